#include "relay/subscriptions.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "nostr/replies.hpp"

namespace todoke::relay {
namespace {

bool asks_for_nothing_stored(std::span<const nostr::Filter> filters) {
  return std::all_of(filters.begin(), filters.end(), [](const auto& filter) { return filter.limit == 0U; });
}

}  // namespace

Subscriptions::Subscriptions(Executor executor, Executor read_executor, const HubOptions& options,
                             Reader& reader, TopicBook& topics, const LogFollower& log, RecentCache& cache,
                             const Clock& clock, RelayMetrics& metrics)
    : executor_(std::move(executor)),
      read_executor_(std::move(read_executor)),
      options_(options),
      reader_(reader),
      topics_(topics),
      log_(log),
      cache_(cache),
      clock_(clock),
      metrics_(metrics),
      live_(options.waiting_max, clock, metrics,
            [this](Subscription& subscription) { fail_as_too_slow(subscription); }),
      reads_({options.reads_max, options.reads_under_way_max, options.read_budget}, query_timeout_, clock,
             metrics.reads_under_way, metrics.reads_waiting, read_hooks()),
      counts_({options.reads_max, options.counts_under_way_max, options.read_budget}, query_timeout_, clock,
              metrics.counts_under_way, metrics.counts_waiting, count_hooks()),
      idle_(executor_) {}

Subscriptions::~Subscriptions() = default;

Peer& Subscriptions::peer_of(const SubscriberPtr& subscriber) {
  auto& peer = peers_[subscriber.get()];
  if (!peer) {
    peer = std::make_unique<Peer>(subscriber, household_of(subscriber->network()));
    ++peer->household->connections;
  }
  return *peer;
}

HouseholdPtr Subscriptions::household_of(const std::string& network) {
  if (households_.size() >= households_checked_at_) forget_households();
  auto& household = households_[network];
  if (!household) household = std::make_shared<Household>();
  return household;
}

void Subscriptions::forget_households() {
  const auto now = clock_.steady();
  const auto budget = options_.read_budget;
  std::erase_if(households_, [&](const auto& entry) {
    auto& household = *entry.second;
    return household.connections == 0 && household.reads.is_forgettable(now, budget) &&
           household.counts.is_forgettable(now, budget);
  });
  households_checked_at_ = std::max(kHouseholdsMin, 2 * households_.size());
}

Peer* Subscriptions::find_peer(const Subscriber& subscriber) {
  const auto found = peers_.find(&subscriber);
  return found == peers_.end() ? nullptr : found->second.get();
}

void Subscriptions::open(const SubscriberPtr& subscriber, nostr::ReqMessage request) {
  auto& peer = peer_of(subscriber);
  const auto sub = request.sub.text();
  remove(peer, sub);
  const auto bytes = memory_of(request.filters);
  auto refusal = refusal_of(peer, request.filters, bytes);
  if (peer.subscriptions.size() >= subscriptions_max_) refusal = nostr::Reason::too_many_subscriptions;
  if (refusal) return refuse_new(peer, sub, *refusal);
  const auto subscription = std::make_shared<Subscription>(peer, std::move(request), bytes, clock_.steady());
  peer.subscriptions.emplace(sub, subscription);
  hold(peer, bytes);
  live_.add(*subscription);
  metrics_.subscriptions.add(1);
  if (asks_for_nothing_stored(subscription->filters)) return answer_with_nothing(*subscription);
  reads_.ask(peer.reads, subscription);
}

void Subscriptions::count(const SubscriberPtr& subscriber, nostr::CountMessage request) {
  auto& peer = peer_of(subscriber);
  const auto bytes = memory_of(request.filters);
  auto refusal = refusal_of(peer, request.filters, bytes);
  if (peer.counts.waiting() >= options_.counts_waiting_max) refusal = nostr::Reason::rate_limited;
  if (refusal) return refuse_new(peer, request.sub.text(), *refusal);
  hold(peer, bytes);
  Count count{subscriber, std::move(request), bytes, clock_.steady()};
  counts_.ask(peer.counts, std::make_shared<Count>(std::move(count)));
}

std::optional<nostr::Reason> Subscriptions::refusal_of(const Peer& peer,
                                                       std::span<const nostr::Filter> filters,
                                                       std::size_t bytes) const {
  if (names_disabled_topic(filters)) return nostr::Reason::topic_not_enabled;
  if (peer.filter_bytes + bytes > options_.filter_bytes_max) return nostr::Reason::filters_too_large;
  if (filter_bytes_ + bytes > options_.filter_bytes_in_all_max) return nostr::Reason::capacity;
  return std::nullopt;
}

// The session has looked already; but since then the topic may have been disabled.
bool Subscriptions::names_disabled_topic(std::span<const nostr::Filter> filters) const {
  if (options_.policy != nostr::TopicPolicy::topics) return false;
  const auto enabled = topics_.topics();
  return std::any_of(filters.begin(), filters.end(), [&](const nostr::Filter& filter) {
    const auto* topics = filter.tag('t');
    return topics != nullptr && !std::all_of(topics->values().begin(), topics->values().end(),
                                             [&](const auto& topic) { return enabled->is_enabled(topic); });
  });
}

void Subscriptions::hold(Peer& peer, std::size_t bytes) {
  peer.filter_bytes += bytes;
  filter_bytes_ += bytes;
  metrics_.filter_bytes.set(static_cast<double>(filter_bytes_));
}

void Subscriptions::release(Peer& peer, std::size_t bytes) {
  peer.filter_bytes -= bytes;
  filter_bytes_ -= bytes;
  metrics_.filter_bytes.set(static_cast<double>(filter_bytes_));
}

void Subscriptions::close(const Subscriber& subscriber, const std::string& sub) {
  auto* peer = find_peer(subscriber);
  if (peer == nullptr) return;
  remove(*peer, sub);
  end_counts(*peer, sub);
}

void Subscriptions::end_counts(Peer& peer, std::string_view sub) {
  counts_.forget(peer.counts, [&](const CountJob& waiting) {
    const auto* count = std::get_if<CountPtr>(&waiting);
    const bool is_meant = count != nullptr && (*count)->request.sub.text() == sub;
    if (is_meant) release(peer, (*count)->bytes);
    return is_meant;
  });
  for (const auto& count : peer.counting) {
    if (count->request.sub.text() == sub) ReadInterrupt::end(count->read);
  }
}

void Subscriptions::page_done(const Subscriber& subscriber) {
  if (auto* peer = find_peer(subscriber)) reads_.page_done(peer->reads);
  tell_answered();
}

void Subscriptions::drain(const SubscriberPtr& subscriber) {
  draining_.emplace(subscriber.get(), subscriber);
  tell_answered();
}

void Subscriptions::tell_answered() {
  std::erase_if(draining_, [this](const auto& entry) {
    const auto* peer = find_peer(*entry.first);
    const bool is_answered = peer == nullptr || (peer->reads.is_idle() && peer->counts.is_idle());
    if (is_answered) entry.second->all_answered();
    return is_answered;
  });
}

void Subscriptions::leave(const Subscriber& subscriber) {
  auto* peer = find_peer(subscriber);
  draining_.erase(&subscriber);
  if (peer == nullptr) return;
  reads_.leave(peer->reads);
  counts_.leave(peer->counts);
  for (const auto& count : peer->counting) ReadInterrupt::end(count->read);
  --peer->household->connections;
  while (!peer->subscriptions.empty()) remove(*peer, std::string(peer->subscriptions.begin()->first));
  while (!peer->reconciliations.empty()) remove_set(ReconciliationPtr(peer->reconciliations.begin()->second));
  release(*peer, peer->filter_bytes);
  peers_.erase(&subscriber);
}

void Subscriptions::remove(Peer& peer, const std::string& sub) {
  const auto found = peer.subscriptions.find(sub);
  if (found == peer.subscriptions.end()) return;
  auto& subscription = *found->second;
  live_.remove(subscription);
  release(peer, subscription.bytes);
  reads_.forget(peer.reads, [&](const auto& waiting) { return waiting == found->second; });
  subscription.peer = nullptr;
  ReadInterrupt::end(subscription.read);
  metrics_.subscriptions.add(-1);
  peer.subscriptions.erase(found);
}

void Subscriptions::refuse_new(Peer& peer, const std::string& sub, nostr::Reason reason) {
  metrics_.req_refused.with({std::string(label_of(reason))}).add();
  close_for(peer, sub, reason);
}

void Subscriptions::close_for(Peer& peer, const std::string& sub, nostr::Reason reason) {
  peer.subscriber->deliver({text_frame(nostr::closed_message(sub, text_of(reason)))});
  remove(peer, std::string(sub));
}

void Subscriptions::count_answered(SteadyTime opened_at) {
  metrics_.query_seconds.observe(std::chrono::duration<double>(clock_.steady() - opened_at).count());
}

void Subscriptions::fail_query(Peer* peer, const std::string& sub, SteadyTime opened_at,
                               nostr::Reason reason) {
  count_answered(opened_at);
  metrics_.query_failed.with({std::string(label_of(reason))}).add();
  if (peer != nullptr) close_for(*peer, sub, reason);
}

void Subscriptions::fail_as_too_slow(Subscription& subscription) {
  fail_query(subscription.peer, subscription.sub.text(), subscription.opened_at,
             nostr::Reason::query_too_slow);
}

void Subscriptions::topics_changed() {
  const Check check = [this](std::span<const nostr::Filter> filters) {
    return names_disabled_topic(filters) ? std::optional(nostr::Reason::topic_not_enabled) : std::nullopt;
  };
  for (auto& [subscriber, peer] : peers_) recheck(*peer, check);
}

void Subscriptions::recheck(const Subscriber& subscriber, const Check& check) {
  if (auto* peer = find_peer(subscriber)) recheck(*peer, check);
}

void Subscriptions::recheck(Peer& peer, const Check& check) {
  std::vector<std::pair<std::string, nostr::Reason>> refused;
  for (const auto& [sub, subscription] : peer.subscriptions) {
    if (const auto why = check(subscription->filters)) refused.emplace_back(sub, *why);
  }
  for (const auto& [sub, why] : refused) close_for(peer, sub, why);
  std::vector<std::pair<ReconciliationPtr, nostr::Reason>> refused_sets;
  for (const auto& [sub, set] : peer.reconciliations) {
    if (const auto why = check({&set->read.filter(), 1})) refused_sets.emplace_back(set, *why);
  }
  for (const auto& [set, why] : refused_sets) fail_set(set, why);
}

}  // namespace todoke::relay
