// Stored events for REQ and COUNT: who gets them when, from memory or from the tables.
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/run_on.hpp"
#include "nostr/replies.hpp"
#include "pg/error.hpp"
#include "relay/subscriptions.hpp"

namespace todoke::relay {
namespace {

std::string eose_of(const nostr::SubId& sub, bool more, nostr::Seq cursor) {
  const std::vector<std::string> hints{more ? "more" : "finish", fmt::format("seq:{}", cursor.value)};
  return nostr::eose_message(sub, hints);
}

}  // namespace

nostr::Reason reason_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const pg::DeadlineExceeded&) {
    return nostr::Reason::query_too_slow;
  } catch (const pg::PoolTimeout&) {
    return nostr::Reason::query_too_slow;
  } catch (const UserError&) {
    return nostr::Reason::search_refused;
  } catch (...) {
    return nostr::Reason::query_failed;
  }
}

ReadLine::Hooks Subscriptions::read_hooks() {
  return {.answer_at_once = [this](const SubscriptionPtr& job) { return answer_from_memory(*job); },
          .begin_read =
              [this](SubscriptionPtr job, ReadLine::Duration left) {
                fill_windows(*job);
                const auto viewer = job->peer->viewer;
                auto household = job->peer->household;
                job->read = std::make_shared<ReadInterrupt>(read_executor_);
                run_task(read_stored(std::move(job), std::move(household), viewer, Deadline::after(left)));
              },
          .refuse = [this](const SubscriptionPtr& job) { fail_as_too_slow(*job); }};
}

CountLine::Hooks Subscriptions::count_hooks() {
  return {.answer_at_once = [](const CountJob&) { return false; },
          .begin_read =
              [this](CountJob job, CountLine::Duration left) {
                if (auto* count = std::get_if<CountPtr>(&job)) return begin_count(std::move(*count), left);
                begin_piece(std::get<ReconciliationPtr>(std::move(job)), left);
              },
          .refuse =
              [this](const CountJob& job) {
                const auto* count = std::get_if<CountPtr>(&job);
                if (count == nullptr) {
                  return fail_set(std::get<ReconciliationPtr>(job), nostr::Reason::query_too_slow);
                }
                auto& peer = peer_of((*count)->subscriber);
                release(peer, (*count)->bytes);
                fail_query(&peer, (*count)->request.sub.text(), (*count)->opened_at,
                           nostr::Reason::query_too_slow);
              }};
}

void Subscriptions::begin_count(CountPtr job, CountLine::Duration left) {
  auto& peer = peer_of(job->subscriber);
  const auto viewer = peer.viewer;
  job->read = std::make_shared<ReadInterrupt>(read_executor_);
  peer.counting.push_back(job);
  run_task(read_count(std::move(job), peer.household, viewer, Deadline::after(left)));
}

void Subscriptions::run_task(Task<void> task) {
  ++tasks_;
  spawn(executor_, std::move(task), [this](const std::exception_ptr& failure) {
    if (failure) log::error("live", "a read ended badly", {{"error", describe(failure)}});
    tell_answered();
    if (--tasks_ == 0) idle_.set();
  });
}

Task<void> Subscriptions::wait_for_reads() {
  idle_.reset();
  if (tasks_ > 0) co_await idle_.wait();
}

// Every filter has a limit of 0. An event that got its OK before the REQ counts as stored, also if it waits
// in a batch.
void Subscriptions::answer_with_nothing(Subscription& subscription) {
  const auto newest = log_.newest();
  const auto cursor = subscription.filters.front().seq_after.value_or(newest);
  subscription.subscriber->deliver({text_frame(eose_of(subscription.sub, true, cursor))});
  live_.go_live(subscription, newest);
}

bool Subscriptions::answer_from_memory(Subscription& subscription) {
  // Some events that got their OK are not in memory yet, and a client that asks for them must find them.
  if (!log_.is_even()) return false;
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(clock_.now());
  StoredPage page(StoredPage::Order::newest_first, reader_.limits().bytes_max);
  for (const auto& filter : subscription.filters) {
    const auto limit = reader_.limit_of(filter);
    if (limit == 0) page.cut();
    if (limit > 0 && !cache_.find(filter, limit, subscription.peer->viewer, now, log_.head(), page))
      return false;
  }
  metrics_.queries_from_memory.add();
  finish_read(subscription, {page.events(), page.more(), log_.head(), log_.head()});
  return true;
}

void Subscriptions::finish_read(Subscription& subscription, ReadResult result) {
  count_answered(subscription.opened_at);
  reads_.page_sent(subscription.peer->reads);
  auto eose = eose_of(subscription.sub, result.more, result.cursor);
  subscription.subscriber->deliver_page(subscription.sub, std::move(result.events), std::move(eose));
  live_.go_live(subscription, result.head);
}

Task<void> Subscriptions::read_stored(SubscriptionPtr subscription, HouseholdPtr household, Viewer viewer,
                                      Deadline deadline) {
  const auto read = subscription->read;
  auto result =
      co_await attempt(run_on(read_executor_, reader_.read(subscription->filters, viewer, deadline, read)));
  subscription->read.reset();
  if (read->has_ended()) {
    metrics_.reads_interrupted.add();
  } else if (!result) {
    log::warning("live", "a REQ failed", {{"error", describe(result.error())}});
    fail_query(subscription->peer, subscription->sub.text(), subscription->opened_at,
               reason_of(result.error()));
  } else {
    finish_read(*subscription, std::move(*result));
  }
  auto* peer = find_peer(*subscription->subscriber);
  reads_.read_ended(household->reads, peer == nullptr ? nullptr : &peer->reads);
}

Task<void> Subscriptions::read_count(CountPtr count, HouseholdPtr household, Viewer viewer,
                                     Deadline deadline) {
  const auto found = co_await attempt(
      run_on(read_executor_, reader_.count(count->request.filters, viewer, deadline, count->read)));
  auto* peer = find_peer(*count->subscriber);
  if (peer != nullptr) {
    release(*peer, count->bytes);
    std::erase(peer->counting, count);
  }
  if (count->read->has_ended()) {
    metrics_.reads_interrupted.add();
  } else if (!found) {
    log::warning("live", "a COUNT failed", {{"error", describe(found.error())}});
    fail_query(peer, count->request.sub.text(), count->opened_at, reason_of(found.error()));
  } else if (peer != nullptr) {
    finish_count(*peer, *count, *found);
  }
  counts_.read_ended(household->counts, peer == nullptr ? nullptr : &peer->counts);
}

void Subscriptions::finish_count(Peer& peer, const Count& count, std::uint64_t found) {
  const auto& request = count.request;
  if (names_disabled_topic(request.filters))
    return close_for(peer, request.sub.text(), nostr::Reason::topic_not_enabled);
  count_answered(count.opened_at);
  peer.subscriber->deliver_count(request.sub, found);
}

void Subscriptions::fill_windows(const Subscription& subscription) {
  for (const auto& filter : subscription.filters) {
    if (fills_ >= options_.fills_under_way_max) return;
    auto window = cache_.wants(filter);
    if (!window) continue;
    ++fills_;
    const auto number = cache_.begin_fill(*window);
    run_task(fill_window(std::move(*window), number));
  }
}

Task<void> Subscriptions::fill_window(nostr::Filter window, std::uint64_t number) {
  const auto& limits = cache_.limits();
  const auto deadline = Deadline::after(query_timeout_.load());
  auto newest = co_await attempt(
      run_on(read_executor_, reader_.recent(window, limits.events_max, limits.fill_bytes_max, deadline)));
  --fills_;
  if (newest) {
    cache_.fill(window, number, std::move(*newest));
  } else {
    cache_.forget(window, number);
    log::warning("live", "recent events were not read", {{"error", describe(newest.error())}});
  }
}

}  // namespace todoke::relay
