// Reconciliations (NIP-77): who may open one, who reads and answers when, and what ends it.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/run_on.hpp"
#include "nostr/replies.hpp"
#include "relay/subscriptions.hpp"

namespace todoke::relay {
namespace {

using nostr::Reason;
using SetPtr = std::shared_ptr<const nostr::NegSet>;

// On the reader's executor: for a million events 20 ms, and an answer up to as much.
Task<SetPtr> make_set(SetRead& read) {
  co_return std::make_shared<const nostr::NegSet>(read.take());
}

// The message to send; nothing for a message that is none.
Task<std::optional<std::string>> make_answer(SetPtr set, const nostr::SubId& sub, const std::string& message,
                                             std::size_t bytes_max) {
  const auto answer = nostr::neg_answer(*set, message, bytes_max);
  if (!answer) co_return std::nullopt;
  co_return nostr::neg_msg_message(sub, *answer);
}

}  // namespace

// Room for one set of the largest in any case.
std::size_t Subscriptions::set_bytes_max() const {
  return std::max(options_.set_bytes_in_all_max, 2 * sizeof(nostr::NegItem) * set_events_max_);
}

std::optional<Reason> Subscriptions::refusal_of_set(const Peer& peer, const nostr::Filter& filter) {
  if (names_disabled_topic({&filter, 1})) return Reason::topic_not_enabled;
  if (peer.reconciliations.size() >= options_.sets_max) return Reason::neg_too_many_open;
  if (peer.counts.waiting() >= options_.counts_waiting_max) return Reason::rate_limited;
  if (set_memory_.bytes >= set_bytes_max()) return Reason::capacity;
  return std::nullopt;
}

void Subscriptions::open_set(const SubscriberPtr& subscriber, nostr::NegOpenMessage request) {
  close_set(*subscriber, request.sub.text());
  auto& peer = peer_of(subscriber);
  if (const auto refusal = refusal_of_set(peer, request.filter)) {
    metrics_.sets_refused.with({std::string(label_of(*refusal))}).add();
    subscriber->deliver({text_frame(nostr::neg_err_message(request.sub.text(), text_of(*refusal)))});
    return;
  }
  SetRead read(std::move(request.filter), peer.viewer, set_events_max_);
  const auto job = std::make_shared<Reconciliation>(peer, std::move(request), std::move(read), set_memory_,
                                                    clock_.steady());
  peer.reconciliations.emplace(job->sub.text(), job);
  sets_.insert(job);
  show_sets();
  counts_.ask(peer.counts, job);
}

void Subscriptions::compare(const SubscriberPtr& subscriber, nostr::NegMsgMessage message) {
  auto* peer = find_peer(*subscriber);
  const auto& sub = message.sub.text();
  const auto found = peer == nullptr ? nullptr : [&]() -> ReconciliationPtr {
    const auto at = peer->reconciliations.find(sub);
    return at == peer->reconciliations.end() ? nullptr : at->second;
  }();
  if (found && !found->waiting) return fail_set(found, Reason::neg_not_open);
  if (!found) {
    subscriber->deliver({text_frame(nostr::neg_err_message(sub, text_of(Reason::neg_not_open)))});
    return;
  }
  found->message = std::move(message.message);
  found->waiting = false;
  run_task(answer_set(found, subscriber));
}

void Subscriptions::close_set(const Subscriber& subscriber, const std::string& sub) {
  auto* peer = find_peer(subscriber);
  if (peer == nullptr) return;
  const auto found = peer->reconciliations.find(sub);
  if (found != peer->reconciliations.end()) remove_set(ReconciliationPtr(found->second));
}

void Subscriptions::drop_idle_sets() {
  const auto since = clock_.steady() - options_.set_idle_max;
  std::vector<ReconciliationPtr> idle;
  for (const auto& job : sets_) {
    if (job->waiting && job->used_at < since) idle.push_back(job);
  }
  for (const auto& job : idle) fail_set(job, Reason::neg_too_slow);
}

void Subscriptions::begin_piece(ReconciliationPtr job, CountLine::Duration left) {
  auto& peer = *job->peer;
  job->interrupt = std::make_shared<ReadInterrupt>(read_executor_);
  run_task(read_piece(std::move(job), peer.subscriber, peer.household, Deadline::after(left)));
}

Task<void> Subscriptions::read_piece(ReconciliationPtr job, SubscriberPtr subscriber, HouseholdPtr household,
                                     Deadline deadline) {
  const auto interrupt = job->interrupt;
  const auto piece =
      co_await attempt(run_on(read_executor_, reader_.read_piece(job->read, deadline, interrupt)));
  job->interrupt.reset();
  job->hold(job->read.bytes());
  auto* peer = find_peer(*subscriber);
  counts_.read_ended(household->counts, peer == nullptr ? nullptr : &peer->counts);
  if (job->peer == nullptr) {
    metrics_.reads_interrupted.add();
  } else if (!piece) {
    log::warning("live", "a set of NIP-77 was not read", {{"error", describe(piece.error())}});
    fail_set(job, reason_of(piece.error()));
  } else if (job->read.is_too_large()) {
    fail_set(job, Reason::neg_too_many_events);
  } else if (set_memory_.bytes > set_bytes_max()) {
    fail_set(job, Reason::capacity);
  } else if (!job->read.ended()) {
    counts_.ask(job->peer->counts, job);
  } else {
    job->set = co_await run_on(read_executor_, make_set(job->read));
    job->hold(job->set->bytes());
    if (job->peer == nullptr) co_return;
    co_await answer_set(std::move(job), std::move(subscriber));
  }
}

Task<void> Subscriptions::answer_set(ReconciliationPtr job, SubscriberPtr subscriber) {
  metrics_.set_messages.add();
  const auto message = std::exchange(job->message, {});
  const auto answer = co_await run_on(
      read_executor_, make_answer(job->set, job->sub, message, options_.set_answer_bytes_max));
  job->waiting = true;
  job->used_at = clock_.steady();
  if (job->peer == nullptr) co_return;
  if (!answer) {
    fail_set(job, Reason::neg_bad_message);
  } else {
    subscriber->deliver({text_frame(*answer)});
  }
}

void Subscriptions::fail_set(const ReconciliationPtr& job, Reason reason) {
  if (job->peer == nullptr) return;
  metrics_.sets_refused.with({std::string(label_of(reason))}).add();
  job->peer->subscriber->deliver({text_frame(nostr::neg_err_message(job->sub.text(), text_of(reason)))});
  remove_set(job);
}

void Subscriptions::remove_set(const ReconciliationPtr& job) {
  auto& peer = *std::exchange(job->peer, nullptr);
  counts_.forget(peer.counts, [&](const CountJob& waiting) {
    const auto* other = std::get_if<ReconciliationPtr>(&waiting);
    return other != nullptr && *other == job;
  });
  ReadInterrupt::end(job->interrupt);
  sets_.erase(job);
  peer.reconciliations.erase(job->sub.text());
  show_sets();
}

void Subscriptions::show_sets() {
  metrics_.sets.set(static_cast<double>(sets_.size()));
}

}  // namespace todoke::relay
