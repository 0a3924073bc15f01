#include "gossip/bridge.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "gossip/channel.hpp"
#include "gossip/config.hpp"
#include "gossip/loss.hpp"
#include "gossip/policy.hpp"

namespace todoke::gossip {
namespace {

using namespace std::chrono_literals;
using outbox::GossipVerdict;

constexpr std::chrono::milliseconds kHouseEvery = 500ms;
// While something waits to go out.
constexpr std::chrono::milliseconds kTick = 2ms;
// Between two looks at what else there is to do; about 4 ms of signatures.
constexpr std::size_t kMessagesAtOnce = 64;
// A message that the library does not take for so long is dropped: others wait behind it.
constexpr std::chrono::milliseconds kSendPatience = 2s;
constexpr int kPressureHolds = 2;
// Before a start: what may not have been sent; how many of these; and how long a first neighbour is waited
// for.
constexpr std::chrono::seconds kUnsentFor(60);
constexpr std::size_t kUnsentMax = 20'000;
constexpr std::chrono::seconds kUnsentPatience(60);
constexpr std::string_view kHealthLine = "gossip neighbours";

std::string address_of(const Config& config, bool loopback) {
  if (!config.is_default(keys::kListen.spec.name) || !loopback) return config.get(keys::kListen);
  return "127.0.0.1:7449";
}

std::string any_port(const std::string& address) {
  return address.substr(0, address.rfind(':')) + ":0";
}

}  // namespace

Bridge::Bridge(BridgeParts parts)
    : PeriodicService(parts.executor,
                      {.name = "gossip", .failed = "a round of gossip failed", .every = kHouseEvery},
                      parts.metrics),
      clock_(parts.clock),
      peers_(parts.peers),
      pressure_(parts.pressure),
      health_(parts.health),
      folder_(std::move(parts.folder)),
      listen_on_(address_of(parts.config, parts.loopback)),
      may_take_another_port_(parts.config.is_default(keys::kListen.spec.name)),
      rates_(parts.rates),
      metrics_(parts.metrics),
      filler_({.executor = parts.executor,
               .clock = parts.clock,
               .pressure = parts.pressure,
               .neighbours = neighbours_,
               .metrics = metrics_,
               .rates = parts.rates,
               .look_soon =
                   [this] {
                     filler_is_due_ = true;
                     wake_up();
                   }}),
      settings_(std::make_shared<const Settings>(settings_from(parts.config))),
      info_(std::make_shared<const std::string>("{}")),
      held_(settings_.load()),
      limits_(held_->rates, parts.clock, parts.metrics),
      pace_(held_->sent_per_second) {
  endpoint_options_.message_bytes_max = parts.message_bytes_max;
  endpoint_options_.connections_max = static_cast<std::size_t>(parts.config.get(keys::kConnectionsMax));
  endpoint_options_.relays = parts.config.get(keys::kRelays);
  peers_.on_change([this] { look_soon(); });
}

Bridge::~Bridge() = default;

Bridge::Settings Bridge::settings_from(const Config& config) const {
  Settings settings;
  settings.rates.events_per_second = static_cast<double>(config.get(keys::kEventsPerSecond));
  settings.rates.refused_per_minute = static_cast<double>(config.get(keys::kRefusedPerMinute));
  settings.rates.on = rates_;
  settings.sent_per_second = static_cast<double>(config.get(keys::kSentPerSecond));
  for (const auto& text : config.get(keys::kBlocked))
    settings.blocked.push_back(NodeId::from_hex(text).value());
  settings.fill = {config.get(keys::kReconcileEvery), config.get(keys::kReconcileWindow)};
  return settings;
}

void Bridge::attach(std::weak_ptr<outbox::GossipIn> relay, std::weak_ptr<outbox::FillSource> store) {
  filler_.attach(relay, store);
  relay_ = std::move(relay);
  store_ = std::move(store);
}

void Bridge::change(const Config& config) {
  settings_.store(std::make_shared<const Settings>(settings_from(config)));
  look_soon();
}

void Bridge::look_soon() {
  house_is_due_ = true;
  wake_up();
}

void Bridge::topics_changed() {
  topics_are_due_ = true;
  look_soon();
}

void Bridge::took(outbox::TakenEvent taken) {
  auto topics = destinations(taken);
  if (topics.empty()) return;
  switch (out_.push({std::move(taken.event), topics})) {
    case OutQueue::Pushed::first:
      return wake_up();
    case OutQueue::Pushed::more:
      return;
    case OutQueue::Pushed::dropped:
      for (const auto& topic : topics) not_sent(topic, "out_full");
  }
}

void Bridge::filled(const std::vector<std::string>& topics) {
  filler_.has_news(topics);
}

void Bridge::not_sent(const std::string& topic, std::string_view why) {
  metrics_.dropped.with({std::string(why)}).add();
  filler_.has_news({topic});
}

void Bridge::on_message(const ChannelId& channel, const NodeId& from, std::string_view bytes) noexcept {
  metrics_.received.add();
  if (loses_next()) return metrics_.dropped.with({"test"}).add();
  switch (inbox_.push({channel, from, std::string(bytes)})) {
    case Inbox::Pushed::first:
      return wake_up();
    case Inbox::Pushed::more:
      return;
    case Inbox::Pushed::dropped:
      metrics_.dropped.with({"inbox_full"}).add();
      filler_.lost(channel);
  }
}

void Bridge::on_neighbour(const ChannelId& channel, const NodeId& peer, bool is_up) noexcept {
  if (is_up) {
    neighbours_.up(channel, peer);
  } else {
    neighbours_.down(channel, peer);
  }
}

void Bridge::on_lag(const ChannelId& channel) noexcept {
  metrics_.lagged.add();
  filler_.lost(channel);
  look_soon();
}

void Bridge::on_question(const NodeId& from, std::uint64_t number, std::string_view bytes) noexcept {
  filler_.on_question(from, number, bytes);
}

void Bridge::on_answer(std::uint64_t number, std::optional<std::string_view> bytes) noexcept {
  filler_.on_answer(number, bytes);
}

void Bridge::on_ended(const ChannelId& channel) noexcept {
  neighbours_.left(channel);
  {
    const std::lock_guard lock(told_mutex_);
    ended_.push_back(channel);
  }
  look_soon();
}

void Bridge::on_known(const NodeId& peer) noexcept {
  {
    const std::lock_guard lock(told_mutex_);
    known_.push_back(peer);
  }
  look_soon();
}

void Bridge::listen() {
  key_ = take_node_key(folder_);
  id_ = id_of(key_.key);
  endpoint_options_.secret_key = key_.key;
  endpoint_options_.listen = listen_on_;
  try {
    endpoint_ = Endpoint::start(endpoint_options_, *this);
  } catch (const AddressInUse&) {
    if (!may_take_another_port_) throw;
    endpoint_options_.listen = any_port(listen_on_);
    endpoint_ = Endpoint::start(endpoint_options_, *this);
    log::warning("gossip", "the default port is in use, another one was taken", {{"default", listen_on_}});
  }
}

Task<void> Bridge::start() {
  co_await run_blocking([this] { listen(); });
  channels_.clear();
  dialled_.clear();
  neighbours_.clear();
  endpoint_->block(held_->blocked);
  filler_.set(held_->fill);
  filler_.begin(*endpoint_);
  const auto unsent = co_await attempt(read_unsent());
  if (!unsent)
    log::warning("gossip", "the last minute was not read to be sent again",
                 {{"error", describe(unsent.error())}});
  tell_state();
  const auto addresses = endpoint_->addresses();
  log::info("gossip", "listening",
            {{"node_id", id_->hex()}, {"address", addresses.empty() ? listen_on_ : addresses.front()}});
  topics_changed();
}

Task<void> Bridge::run() {
  co_await PeriodicService::run();
  health_.forget(std::string(kHealthLine));
  co_await filler_.finish();
  co_await run_blocking([this] { endpoint_.reset(); });
  key_ = {};
}

Task<void> Bridge::round(RoundCause /*cause*/) {
  const auto relay = relay_.lock();
  if (!relay) co_return;
  for (;;) {
    const auto now = clock_.steady();
    if (house_is_due_.exchange(false) || now >= house_at_) {
      house_at_ = now + kHouseEvery;
      keep_house(*relay);
    }
    if (filler_is_due_.exchange(false)) filler_.look();
    const bool more_in = take_in(*relay);
    const bool more_out = send_out();
    if (stop_asked()) co_return;
    if (!more_in && !more_out) co_return;
    // Lets others have their turn.
    co_await pause(more_in ? std::chrono::milliseconds(0) : kTick);
  }
}

void Bridge::keep_house(const outbox::GossipIn& relay) {
  if (const auto settings = settings_.load(); settings != held_) {
    held_ = settings;
    limits_.set(held_->rates);
    pace_.set(held_->sent_per_second);
    filler_.set(held_->fill);
    endpoint_->block(held_->blocked);
  }
  const bool pressed = pressure_.level() >= kPressureHolds;
  if (topics_are_due_.exchange(false) || pressed != pressed_) {
    pressed_ = pressed;
    follow_topics(relay);
  }
  forget_ended();
  follow_peers();
  join_known();
  join_again();
  send_again();
  filler_.look();
  tell_state();
}

Task<void> Bridge::read_unsent() {
  unsent_.clear();
  const auto store = store_.lock();
  if (!store) co_return;
  unsent_ = co_await store->sent_since(clock_.now() - kUnsentFor, kUnsentMax);
  unsent_until_ = clock_.steady() + kUnsentPatience;
}

void Bridge::send_again() {
  if (unsent_.empty()) return;
  if (clock_.steady() > unsent_until_) return unsent_.clear();
  if (neighbours_.all().empty()) return;
  for (auto& taken : std::exchange(unsent_, {})) {
    metrics_.sent_again.add();
    took(std::move(taken));
  }
}

void Bridge::tell_state() {
  const auto neighbours = neighbours_.all();
  const auto joined = static_cast<std::size_t>(std::count_if(
      channels_.begin(), channels_.end(), [](const auto& entry) { return entry.second.joined; }));
  metrics_.neighbours.set(static_cast<double>(neighbours.size()));
  metrics_.topics.set(static_cast<double>(joined));
  metrics_.inbox.set(static_cast<double>(inbox_.size()));
  metrics_.out_waiting.set(static_cast<double>(out_.size()));
  const bool alone = !dialled_.empty() && neighbours.empty();
  health_.report(std::string(kHealthLine), false,
                 {alone ? HealthState::degraded : HealthState::up,
                  fmt::format("{} of {} peers to dial, {} neighbours, {} topics",
                              std::count_if(dialled_.begin(), dialled_.end(),
                                            [&](const auto& d) { return neighbours.contains(d.peer.id); }),
                              dialled_.size(), neighbours.size(), joined)});

  const auto addresses = endpoint_->addresses();
  JsonWriter json;
  json.begin_object().member("node_id", id_->hex()).key("addresses").begin_array();
  for (const auto& address : addresses) json.value(address);
  json.end_array();
  json.member("peer", addresses.empty() ? std::string() : id_->hex() + "@" + addresses.front());
  json.key("peers").begin_array();
  for (const auto& dialled : dialled_) {
    const auto found = neighbours.find(dialled.peer.id);
    json.begin_object().member("peer", dialled.peer.text());
    json.member("topics", found == neighbours.end() ? std::size_t(0) : found->second).end_object();
  }
  json.end_array().key("neighbours").begin_array();
  for (const auto& [peer, topics] : neighbours) {
    json.begin_object().member("node_id", peer.hex()).member("topics", topics).end_object();
  }
  json.end_array().member("topics", joined).end_object();
  info_.store(std::make_shared<const std::string>(std::move(json).text()));
}

bool Bridge::take_in(outbox::GossipIn& relay) {
  if (!has_room()) return false;  // room wakes it
  for (const auto& arrival : inbox_.pop(kMessagesAtOnce)) take_message(relay, arrival);
  return has_room() && inbox_.size() > 0;
}

void Bridge::take_message(outbox::GossipIn& relay, const Arrival& arrival) {
  const auto channel = channels_.find(arrival.channel);
  if (channel == channels_.end()) return metrics_.dropped.with({"left"}).add();
  switch (limits_.charge(arrival.from)) {
    case PeerLimits::Verdict::listen:
      break;
    case PeerLimits::Verdict::too_fast:
      filler_.lost(arrival.channel);
      return metrics_.dropped.with({"rate"}).add();
    case PeerLimits::Verdict::muted:
      return metrics_.dropped.with({"muted"}).add();
  }
  const auto verdict = relay.take(arrival.bytes, channel->second.topic, outbox::GossipWay::message, [this] {
    ++rooms_;
    wake_up();
  });
  if (verdict.full) ++fulls_;
  // Of what was refused the id is a claim that nobody has checked.
  const bool is_event =
      verdict.kind == GossipVerdict::Kind::taken || verdict.kind == GossipVerdict::Kind::known;
  if (verdict.id && is_event) recent_.add(arrival.channel, *verdict.id);
  switch (verdict.kind) {
    case GossipVerdict::Kind::taken:
      metrics_.taken.add();
      break;
    case GossipVerdict::Kind::known:
      metrics_.known.add();
      break;
    case GossipVerdict::Kind::held:
      metrics_.refused.with({std::string(verdict.reason)}).add();
      break;
    case GossipVerdict::Kind::refused:
      metrics_.refused.with({std::string(verdict.reason)}).add();
      if (limits_.refused(arrival.from)) {
        metrics_.muted.add();
        log::warning("gossip", "a neighbour breaks rules and is not listened to for a while",
                     {{"node_id", arrival.from.hex()}, {"last", verdict.reason}});
      }
      break;
  }
}

bool Bridge::send_out() {
  for (;;) {
    if (!current_) {
      auto next = out_.pop(1);
      if (next.empty()) return false;
      current_ = std::move(next.front());
      current_since_ = clock_.steady();
    }
    if (!send_current()) return true;
    current_.reset();
  }
}

// False: the pace or the library says later.
bool Bridge::send_current() {
  auto& topics = current_->topics;
  while (!topics.empty()) {
    const auto channel = channel_of(topics.back());
    if (!recent_.contains(channel, current_->event->id())) {
      const auto now = clock_.steady();
      if (!neighbours_.has_any(channel)) {
        metrics_.dropped.with({"no_neighbour"}).add();
      } else if (!pace_.take(now)) {
        return false;
      } else {
        switch (endpoint_->send(channel, current_->event->json())) {
          case Sent::taken:
            metrics_.sent.add();
            break;
          case Sent::full:
            if (now - current_since_ < kSendPatience) {
              pace_.give_back();
              return false;
            }
            not_sent(topics.back(), "network_full");
            break;
          case Sent::not_joined:
            metrics_.dropped.with({"no_neighbour"}).add();
            break;
          case Sent::too_long:
            metrics_.dropped.with({"too_long"}).add();
            break;
        }
      }
    }
    topics.pop_back();
  }
  return true;
}

}  // namespace todoke::gossip
