#include "relay/hub.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
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

}  // namespace

Hub::Hub(const Executor& executor, HubOptions options, Reader& reader, pg::Listener& listener,
         TopicBook& topics, KnownIds& known, outbox::LogSignal& log, const Clock& clock,
         RelayMetrics& metrics)
    : executor_(executor),
      options_(std::move(options)),
      reader_(reader),
      listener_(listener),
      topics_(topics),
      known_(known),
      log_(log),
      clock_(clock),
      metrics_(metrics),
      cache_(options_.cache),
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
  if (peer.subscriptions.size() >= options_.subscriptions_max) {
    subscriber->deliver(
        {text_frame(nostr::closed_message(sub, text_of(nostr::Reason::too_many_subscriptions)))});
    return;
  }
  auto subscription = std::make_shared<Subscription>(peer, std::move(request), clock_.steady());
  peer.subscriptions.emplace(sub, subscription);
  index_.add(subscription.get(), subscription->filters);
  metrics_.subscriptions.add(1);
  if (peer.reads < options_.reads_max && answer_from_memory(peer, *subscription)) return;
  reading_.insert(subscription.get());
  peer.wanted.push_back(std::move(subscription));
  start_reads(peer);
}

// Reads end by themselves (their deadlines); stopping waits for them.
void Hub::run_task(Task<void> task) {
  ++tasks_;
  spawn(executor_, std::move(task), [this](const std::exception_ptr& failure) {
    if (failure) log::error("live", "a read ended badly", {{"error", describe(failure)}});
    if (--tasks_ == 0) idle_.set();
  });
}

bool Hub::answer_from_memory(Peer& peer, Subscription& subscription) {
  if (options_.policy != nostr::TopicPolicy::topics) return false;
  // Some that got their OK are not in memory yet: who asks for them must find them.
  if (!batches_.empty() || let_go_) return false;
  const auto now = seconds_of(clock_.now());
  ReadResult result;
  for (const auto& filter : subscription.filters) {
    auto answer = cache_.find(filter, reader_.limit_of(filter), peer.viewer, now, head_);
    if (!answer) return false;
    result.more = result.more || answer->more;
    result.events.insert(result.events.end(), answer->events.begin(), answer->events.end());
  }
  if (subscription.filters.size() > 1) {
    sort_newest_first(result.events);
    result.events.erase(std::unique(result.events.begin(), result.events.end()), result.events.end());
  }
  if (cut_at_bytes(result.events, reader_.limits().bytes_max)) result.more = true;
  result.head = head_;
  result.cursor = head_;
  metrics_.queries_from_memory.add();
  ++peer.reads;
  finish_read(peer, subscription, std::move(result));
  return true;
}

void Hub::start_reads(Peer& peer) {
  while (peer.reads < options_.reads_max && !peer.wanted.empty()) {
    auto subscription = std::move(peer.wanted.front());
    peer.wanted.pop_front();
    if (subscription->peer == nullptr || answer_from_memory(peer, *subscription)) continue;
    ++peer.reads;
    fill_cache(*subscription);
    run_task(read_stored(std::move(subscription), peer.viewer));
  }
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
    if (!cache_.wants(topic)) continue;
    run_task(fill_window(topic, cache_.begin_fill(topic)));
  }
}

Task<void> Hub::fill_window(std::string topic, std::uint64_t number) {
  std::exception_ptr failure;
  try {
    auto newest =
        co_await reader_.recent(topic, cache_.events_max(), Deadline::after(options_.query_timeout));
    cache_.fill(topic, number, std::move(newest));
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return;
  cache_.forget(topic, number);
  log::warning("live", "the recent events of a topic were not read", {{"error", describe(failure)}});
}

Task<void> Hub::read_stored(std::shared_ptr<Subscription> subscription, Viewer viewer) {
  const auto subscriber = subscription->subscriber;
  ReadResult result;
  std::exception_ptr failure;
  try {
    result = co_await reader_.read(subscription->filters, viewer, Deadline::after(options_.query_timeout));
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) observe_query(subscription->opened_at, failure);
  if (subscription->peer == nullptr) {  // closed or replaced meanwhile
    read_ended(subscriber);
    co_return;
  }
  auto& peer = *subscription->peer;
  if (failure) {
    refuse(peer, subscription->sub.text(), reason_of(failure));
    read_ended(subscriber);
    co_return;
  }
  finish_read(peer, *subscription, std::move(result));
}

void Hub::finish_read(Peer& peer, Subscription& subscription, ReadResult result) {
  observe_query(subscription.opened_at, nullptr);
  reading_.erase(&subscription);
  subscription.live = true;
  subscription.after = result.head;
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

void Hub::observe_query(SteadyTime began, const std::exception_ptr& failure) {
  metrics_.query_seconds.observe(std::chrono::duration<double>(clock_.steady() - began).count());
  if (!failure) return;
  log::warning("live", "a query failed", {{"error", describe(failure)}});
  metrics_.query_failed.with({std::string(label_of(reason_of(failure)))}).add();
}

void Hub::page_done(SubscriberPtr subscriber) {
  asio::post(executor_, [this, subscriber = std::move(subscriber)] { read_ended(subscriber); });
}

void Hub::read_ended(const SubscriberPtr& subscriber) {
  auto* peer = find_peer(*subscriber);
  if (peer == nullptr) return;
  --peer->reads;
  start_reads(*peer);
}

void Hub::count(SubscriberPtr subscriber, nostr::CountMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    auto& peer = peer_of(subscriber);
    if (peer.counts_wanted.size() >= options_.counts_waiting_max) {
      return refuse(peer, request.sub.text(), nostr::Reason::rate_limited);
    }
    peer.counts_wanted.push_back(std::move(request));
    start_counts(peer);
  });
}

void Hub::start_counts(Peer& peer) {
  while (peer.counts < options_.reads_max && !peer.counts_wanted.empty()) {
    auto request = std::move(peer.counts_wanted.front());
    peer.counts_wanted.pop_front();
    ++peer.counts;
    run_task(read_count(peer.subscriber, std::move(request), peer.viewer));
  }
}

Task<void> Hub::read_count(SubscriberPtr subscriber, nostr::CountMessage request, Viewer viewer) {
  const auto began = clock_.steady();
  std::string reply;
  std::exception_ptr failure;
  try {
    const auto found =
        co_await reader_.count(request.filters, viewer, Deadline::after(options_.query_timeout));
    reply = nostr::count_message(request.sub, found);
  } catch (...) {
    failure = std::current_exception();
  }
  observe_query(began, failure);
  auto* peer = find_peer(*subscriber);
  if (peer == nullptr) co_return;
  --peer->counts;
  if (failure) {
    refuse(*peer, request.sub.text(), reason_of(failure));
  } else {
    subscriber->deliver({text_frame(reply)});
  }
  start_counts(*peer);
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
    while (!peer->subscriptions.empty()) remove(*peer, std::string(peer->subscriptions.begin()->first));
    peers_.erase(subscriber.get());
  });
}

void Hub::remove(Peer& peer, const std::string& sub) {
  const auto found = peer.subscriptions.find(sub);
  if (found == peer.subscriptions.end()) return;
  auto& subscription = *found->second;
  index_.remove(&subscription, subscription.filters);
  reading_.erase(&subscription);
  subscription.peer = nullptr;
  metrics_.subscriptions.add(-1);
  peer.subscriptions.erase(found);
}

void Hub::refuse(Peer& peer, const std::string& sub, nostr::Reason reason) {
  peer.subscriber->deliver({text_frame(nostr::closed_message(sub, text_of(reason)))});
  remove(peer, std::string(sub));
}

void Hub::topics_changed() {
  if (options_.policy != nostr::TopicPolicy::topics) return;
  const auto enabled = topics_.topics();
  const auto is_refused = [&](const nostr::Filter& filter) {
    const auto* topics = filter.tag('t');
    return topics != nullptr && !std::all_of(topics->values().begin(), topics->values().end(),
                                             [&](const auto& topic) { return enabled->is_enabled(topic); });
  };
  for (auto& [subscriber, peer] : peers_) {
    std::vector<std::string> refused;
    for (const auto& [sub, subscription] : peer->subscriptions) {
      const auto& filters = subscription->filters;
      if (std::any_of(filters.begin(), filters.end(), is_refused)) refused.push_back(sub);
    }
    for (const auto& sub : refused) refuse(*peer, sub, nostr::Reason::topic_not_enabled);
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
  std::vector<std::pair<Peer*, std::string>> overflowed;
  const bool is_ephemeral = live->seq.value == 0;
  index_.each_match(*live->event, [&](Subscription& subscription) {
    auto& peer = *subscription.peer;
    if (!is_visible(*live, peer.viewer, now)) return;
    if (!subscription.live && !is_ephemeral) {
      subscription.waiting.push_back(live);
      if (subscription.waiting.size() > options_.waiting_max)
        overflowed.emplace_back(&peer, subscription.sub.text());
      return;
    }
    if (!is_ephemeral && live->seq <= subscription.after) return;
    auto& frame = by_sub[subscription.sub.json()];
    if (!frame) frame = text_frame(nostr::event_message(subscription.sub, live->event->json()));
    frames[peer.subscriber.get()].push_back(frame);
    metrics_.live_delivered.add();
  });
  for (const auto& [peer, sub] : overflowed) {
    metrics_.query_failed.with({std::string(label_of(nostr::Reason::query_too_slow))}).add();
    refuse(*peer, sub, nostr::Reason::query_too_slow);
  }
}

void Hub::flush(Frames frames) {
  for (auto& [subscriber, list] : frames) subscriber->deliver(std::move(list));
}

}  // namespace todoke::relay
