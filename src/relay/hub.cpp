#include "relay/hub.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "base/run_on.hpp"
#include "nostr/replies.hpp"
#include "pg/error.hpp"
#include "relay/hub_parts.hpp"

namespace todoke::relay {
namespace {

std::chrono::sys_seconds seconds_of(SystemTime time) {
  return std::chrono::time_point_cast<std::chrono::seconds>(time);
}

net::FramePtr text_frame(std::string_view text) {
  return net::make_frame(net::WsOpcode::text, text);
}

std::string eose_of(const nostr::SubId& sub, bool more, nostr::Seq cursor) {
  const std::vector<std::string> hints{more ? "more" : "finish", fmt::format("seq:{}", cursor.value)};
  return nostr::eose_message(sub, hints);
}

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

bool asks_for_nothing_stored(std::span<const nostr::Filter> filters) {
  return std::all_of(filters.begin(), filters.end(), [](const auto& filter) { return filter.limit == 0U; });
}

}  // namespace

Hub::Hub(const Executor& executor, Executor read_executor, HubOptions options, Reader& reader,
         pg::Listener& listener, TopicBook& topics, KnownIds& known, outbox::LogSignal& log,
         const Clock& clock, RelayMetrics& metrics)
    : executor_(executor),
      read_executor_(std::move(read_executor)),
      options_(std::move(options)),
      reader_(reader),
      listener_(listener),
      topics_(topics),
      known_(known),
      log_(log),
      clock_(clock),
      metrics_(metrics),
      cache_(options_.cache),
      reads_({options_.reads_max, options_.reads_under_way_max}, query_timeout_, clock,
             metrics.reads_under_way, metrics.reads_waiting, read_hooks()),
      counts_({options_.reads_max, options_.counts_under_way_max}, query_timeout_, clock,
              metrics.counts_under_way, metrics.counts_waiting, count_hooks()),
      wake_(executor),
      idle_(executor) {}

Hub::~Hub() = default;

Hub::Peer& Hub::peer_of(const SubscriberPtr& subscriber) {
  auto& peer = peers_[subscriber.get()];
  if (!peer) {
    peer = std::make_unique<Peer>();
    peer->subscriber = subscriber;
  }
  return *peer;
}

Hub::Peer* Hub::find_peer(const Subscriber& subscriber) {
  const auto found = peers_.find(&subscriber);
  return found == peers_.end() ? nullptr : found->second.get();
}

void Hub::open(SubscriberPtr subscriber, nostr::ReqMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    open_now(subscriber, std::move(request));
  });
}

void Hub::open_now(const SubscriberPtr& subscriber, nostr::ReqMessage request) {
  auto& peer = peer_of(subscriber);
  const auto sub = request.sub.text();
  remove(peer, sub);
  const auto bytes = memory_of(request.filters);
  auto refusal = refusal_of(peer, request.filters, bytes);
  if (peer.subscriptions.size() >= subscriptions_max_) refusal = nostr::Reason::too_many_subscriptions;
  if (refusal) return refuse_new(peer, sub, *refusal);
  auto subscription = std::make_shared<Subscription>(peer, std::move(request), bytes, clock_.steady());
  peer.subscriptions.emplace(sub, subscription);
  hold(peer, bytes);
  index_.add(subscription.get(), subscription->filters);
  metrics_.subscriptions.add(1);
  if (asks_for_nothing_stored(subscription->filters)) return go_live(peer, *subscription);
  reading_.insert(subscription.get());
  reads_.ask(peer.reads, std::move(subscription));
}

std::optional<nostr::Reason> Hub::refusal_of(const Peer& peer, std::span<const nostr::Filter> filters,
                                             std::size_t bytes) const {
  if (names_disabled_topic(filters)) return nostr::Reason::topic_not_enabled;
  if (peer.filter_bytes + bytes > options_.filter_bytes_max) return nostr::Reason::filters_too_large;
  if (filter_bytes_ + bytes > options_.filter_bytes_in_all_max) return nostr::Reason::capacity;
  return std::nullopt;
}

// The session has looked already; but since then the topic may have been disabled.
bool Hub::names_disabled_topic(std::span<const nostr::Filter> filters) const {
  if (options_.policy != nostr::TopicPolicy::topics) return false;
  const auto enabled = topics_.topics();
  return std::any_of(filters.begin(), filters.end(), [&](const nostr::Filter& filter) {
    const auto* topics = filter.tag('t');
    return topics != nullptr && !std::all_of(topics->values().begin(), topics->values().end(),
                                             [&](const auto& topic) { return enabled->is_enabled(topic); });
  });
}

void Hub::hold(Peer& peer, std::size_t bytes) {
  peer.filter_bytes += bytes;
  filter_bytes_ += bytes;
  metrics_.filter_bytes.set(static_cast<double>(filter_bytes_));
}

void Hub::release(Peer& peer, std::size_t bytes) {
  peer.filter_bytes -= bytes;
  filter_bytes_ -= bytes;
  metrics_.filter_bytes.set(static_cast<double>(filter_bytes_));
}

// Every filter has a limit of 0. What got its OK before the REQ is stored, also if it waits in a batch.
void Hub::go_live(Peer& peer, Subscription& subscription) {
  subscription.live = true;
  subscription.after = std::max(head_, own_head_);
  if (!batches_.empty()) subscription.after = std::max(subscription.after, batches_.back().log.head);
  const auto cursor = subscription.filters.front().seq_after.value_or(subscription.after);
  peer.subscriber->deliver({text_frame(eose_of(subscription.sub, true, cursor))});
}

// Reads end by themselves (their deadlines); stopping waits for them.
void Hub::run_task(Task<void> task) {
  ++tasks_;
  spawn(executor_, std::move(task), [this](const std::exception_ptr& failure) {
    if (failure) log::error("live", "a read ended badly", {{"error", describe(failure)}});
    if (--tasks_ == 0) idle_.set();
  });
}

bool Hub::answer_from_memory(Subscription& subscription) {
  if (options_.policy != nostr::TopicPolicy::topics) return false;
  // Some that got their OK are not in memory yet: who asks for them must find them.
  if (!batches_.empty() || let_go_) return false;
  auto& peer = *subscription.peer;
  const auto now = seconds_of(clock_.now());
  StoredPage page(StoredPage::Order::newest_first, reader_.limits().bytes_max);
  for (const auto& filter : subscription.filters) {
    const auto limit = reader_.limit_of(filter);
    if (limit == 0) page.cut();
    if (limit > 0 && !cache_.find(filter, limit, peer.viewer, now, head_, page)) return false;
  }
  metrics_.queries_from_memory.add();
  finish_read(peer, subscription, {page.events(), page.more(), head_, head_});
  return true;
}

Hub::ReadLine::Hooks Hub::read_hooks() {
  return {.answer_at_once = [this](const auto& subscription) { return answer_from_memory(*subscription); },
          .begin_read =
              [this](std::shared_ptr<Subscription> subscription, ReadLine::Duration left) {
                fill_cache(*subscription);
                const auto viewer = subscription->peer->viewer;
                run_task(read_stored(std::move(subscription), viewer, Deadline::after(left)));
              },
          .refuse =
              [this](const std::shared_ptr<Subscription>& subscription) {
                fail_query(subscription->peer, subscription->sub.text(), subscription->opened_at,
                           nostr::Reason::query_too_slow);
              }};
}

Hub::CountLine::Hooks Hub::count_hooks() {
  return {.answer_at_once = [](const auto&) { return false; },
          .begin_read =
              [this](CountPtr count, CountLine::Duration left) {
                const auto viewer = peer_of(count->subscriber).viewer;
                run_task(read_count(std::move(count), viewer, Deadline::after(left)));
              },
          .refuse =
              [this](const CountPtr& count) {
                auto& peer = peer_of(count->subscriber);
                release(peer, count->bytes);
                fail_query(&peer, count->request.sub.text(), count->opened_at, nostr::Reason::query_too_slow);
              }};
}

void Hub::fill_cache(const Subscription& subscription) {
  if (options_.policy != nostr::TopicPolicy::topics) return;
  for (const auto& filter : subscription.filters) {
    const auto* topics = filter.tag('t');
    if (topics == nullptr || topics->values().size() != 1 || filter.seq_after || filter.ids ||
        filter.search) {
      continue;
    }
    const auto& topic = topics->values().front();
    if (fills_ >= options_.fills_under_way_max || !cache_.wants(topic)) continue;
    ++fills_;
    run_task(fill_window(topic, cache_.begin_fill(topic)));
  }
}

Task<void> Hub::fill_window(std::string topic, std::uint64_t number) {
  std::exception_ptr failure;
  try {
    const auto& limits = cache_.limits();
    const auto deadline = Deadline::after(query_timeout_.load());
    auto newest = co_await run_on(read_executor_,
                                  reader_.recent(topic, limits.events_max, limits.fill_bytes_max, deadline));
    cache_.fill(topic, number, std::move(newest));
  } catch (...) {
    failure = std::current_exception();
  }
  --fills_;
  if (!failure) co_return;
  cache_.forget(topic, number);
  log::warning("live", "the recent events of a topic were not read", {{"error", describe(failure)}});
}

Task<void> Hub::read_stored(std::shared_ptr<Subscription> subscription, Viewer viewer, Deadline deadline) {
  const auto subscriber = subscription->subscriber;
  ReadResult result;
  std::exception_ptr failure;
  try {
    result = co_await run_on(read_executor_, reader_.read(subscription->filters, viewer, deadline,
                                                          [&] { return subscription->open.load(); }));
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    log::warning("live", "a REQ failed", {{"error", describe(failure)}});
    fail_query(subscription->peer, subscription->sub.text(), subscription->opened_at, reason_of(failure));
  } else if (subscription->peer != nullptr) {  // neither closed nor replaced meanwhile
    finish_read(*subscription->peer, *subscription, std::move(result));
  }
  auto* peer = find_peer(*subscriber);
  reads_.read_ended(peer == nullptr ? nullptr : &peer->reads);
}

void Hub::finish_read(Peer& peer, Subscription& subscription, ReadResult result) {
  count_answered(subscription.opened_at);
  reading_.erase(&subscription);
  subscription.live = true;
  subscription.after = result.head;
  reads_.page_sent(peer.reads);
  auto eose = eose_of(subscription.sub, result.more, result.cursor);
  peer.subscriber->deliver_page(subscription.sub, std::move(result.events), std::move(eose));
  std::vector<net::FramePtr> frames;
  const auto now = seconds_of(clock_.now());
  for (const auto& live : subscription.waiting) {
    if (live->seq <= subscription.after || is_over(*live, now)) continue;
    frames.push_back(text_frame(nostr::event_message(subscription.sub, live->event->json())));
  }
  subscription.waiting = {};
  if (!frames.empty()) peer.subscriber->deliver(std::move(frames));
}

void Hub::count_answered(SteadyTime opened_at) {
  metrics_.query_seconds.observe(std::chrono::duration<double>(clock_.steady() - opened_at).count());
}

void Hub::fail_query(Peer* peer, const std::string& sub, SteadyTime opened_at, nostr::Reason reason) {
  count_answered(opened_at);
  metrics_.query_failed.with({std::string(label_of(reason))}).add();
  if (peer != nullptr) close_for(*peer, sub, reason);
}

void Hub::page_done(SubscriberPtr subscriber) {
  asio::post(executor_, [this, subscriber = std::move(subscriber)] {
    if (auto* peer = find_peer(*subscriber)) reads_.page_done(peer->reads);
  });
}

void Hub::count(SubscriberPtr subscriber, nostr::CountMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    count_now(subscriber, std::move(request));
  });
}

void Hub::count_now(const SubscriberPtr& subscriber, nostr::CountMessage request) {
  auto& peer = peer_of(subscriber);
  const auto bytes = memory_of(request.filters);
  auto refusal = refusal_of(peer, request.filters, bytes);
  if (peer.counts.waiting() >= options_.counts_waiting_max) refusal = nostr::Reason::rate_limited;
  if (refusal) return refuse_new(peer, request.sub.text(), *refusal);
  hold(peer, bytes);
  Count count{subscriber, std::move(request), bytes, clock_.steady()};
  counts_.ask(peer.counts, std::make_shared<Count>(std::move(count)));
}

Task<void> Hub::read_count(CountPtr count, Viewer viewer, Deadline deadline) {
  std::uint64_t found = 0;
  std::exception_ptr failure;
  try {
    found = co_await run_on(read_executor_, reader_.count(count->request.filters, viewer, deadline));
  } catch (...) {
    failure = std::current_exception();
  }
  auto* peer = find_peer(*count->subscriber);
  if (peer != nullptr) release(*peer, count->bytes);
  if (failure) {
    log::warning("live", "a COUNT failed", {{"error", describe(failure)}});
    fail_query(peer, count->request.sub.text(), count->opened_at, reason_of(failure));
  } else if (peer != nullptr) {
    finish_count(*peer, *count, found);
  }
  counts_.read_ended(peer == nullptr ? nullptr : &peer->counts);
}

void Hub::finish_count(Peer& peer, const Count& count, std::uint64_t found) {
  const auto& request = count.request;
  if (names_disabled_topic(request.filters))
    return close_for(peer, request.sub.text(), nostr::Reason::topic_not_enabled);
  count_answered(count.opened_at);
  peer.subscriber->deliver({text_frame(nostr::count_message(request.sub, found))});
}

void Hub::close(SubscriberPtr subscriber, std::string sub) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), sub = std::move(sub)] {
    if (auto* peer = find_peer(*subscriber)) remove(*peer, sub);
  });
}

void Hub::authenticated(SubscriberPtr subscriber) {
  asio::post(executor_,
             [this, subscriber = std::move(subscriber)] { peer_of(subscriber).viewer.authenticated = true; });
}

void Hub::leave(SubscriberPtr subscriber) {
  asio::post(executor_, [this, subscriber = std::move(subscriber)] {
    auto* peer = find_peer(*subscriber);
    if (peer == nullptr) return;
    reads_.leave(peer->reads);
    counts_.leave(peer->counts);
    while (!peer->subscriptions.empty()) remove(*peer, std::string(peer->subscriptions.begin()->first));
    release(*peer, peer->filter_bytes);
    peers_.erase(subscriber.get());
  });
}

void Hub::remove(Peer& peer, const std::string& sub) {
  const auto found = peer.subscriptions.find(sub);
  if (found == peer.subscriptions.end()) return;
  auto& subscription = *found->second;
  index_.remove(&subscription);
  release(peer, subscription.bytes);
  reading_.erase(&subscription);
  reads_.forget(peer.reads, [&](const auto& waiting) { return waiting == found->second; });
  subscription.peer = nullptr;
  subscription.open = false;
  metrics_.subscriptions.add(-1);
  peer.subscriptions.erase(found);
}

void Hub::refuse_new(Peer& peer, const std::string& sub, nostr::Reason reason) {
  metrics_.req_refused.with({std::string(label_of(reason))}).add();
  close_for(peer, sub, reason);
}

void Hub::close_for(Peer& peer, const std::string& sub, nostr::Reason reason) {
  peer.subscriber->deliver({text_frame(nostr::closed_message(sub, text_of(reason)))});
  remove(peer, std::string(sub));
}

void Hub::topics_changed() {
  for (auto& [subscriber, peer] : peers_) {
    std::vector<std::string> refused;
    for (const auto& [sub, subscription] : peer->subscriptions) {
      if (names_disabled_topic(subscription->filters)) refused.push_back(sub);
    }
    for (const auto& sub : refused) close_for(*peer, sub, nostr::Reason::topic_not_enabled);
  }
}

void Hub::ephemeral(LiveEventPtr live) {
  asio::post(executor_, [this, live = std::move(live)] {
    Frames frames;
    dispatch(live, frames);
    flush(std::move(frames));
  });
}

void Hub::dispatch(const LiveEventPtr& live, Frames& frames) {
  const auto now = seconds_of(clock_.now());
  if (is_over(*live, now)) return;
  // Clients choose their ids from few words: most frames serve several.
  HashMap<std::string_view, net::FramePtr> by_sub;
  std::vector<Subscription*> overflowed;
  const bool is_ephemeral = live->seq.value == 0;
  index_.each_match(*live->event, [&](Subscription& subscription) {
    auto& peer = *subscription.peer;
    if (!is_visible(*live, peer.viewer, now)) return;
    if (!subscription.live && !is_ephemeral) {
      subscription.waiting.push_back(live);
      if (subscription.waiting.size() > options_.waiting_max) overflowed.push_back(&subscription);
      return;
    }
    if (!is_ephemeral && live->seq <= subscription.after) return;
    auto& frame = by_sub[subscription.sub.json()];
    if (!frame) frame = text_frame(nostr::event_message(subscription.sub, live->event->json()));
    frames[peer.subscriber.get()].push_back(frame);
    metrics_.live_delivered.add();
  });
  for (const auto* subscription : overflowed) {
    fail_query(subscription->peer, subscription->sub.text(), subscription->opened_at,
               nostr::Reason::query_too_slow);
  }
}

void Hub::flush(Frames frames) {
  for (auto& [subscriber, list] : frames) subscriber->deliver(std::move(list));
}

}  // namespace todoke::relay
