#include "relay/session.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "nostr/event_id.hpp"
#include "nostr/recipients.hpp"
#include "nostr/replies.hpp"
#include "nostr/signature.hpp"
#include "relay/cost.hpp"
#include "relay/ephemeral.hpp"
#include "relay/gossip_door.hpp"
#include "relay/policy.hpp"
#include "relay/writer.hpp"

namespace todoke::relay {
namespace {

using nostr::Reason;
using Answer = nostr::MessageRefusal::Answer;

// So many messages in a row that can't be understood, or CLOSEs beyond the rate, come from no real client.
constexpr std::size_t kBadMessagesMax = 100;
// Messages beyond the rate, more than within it: then a client is made to slow down, to one message a second,
// by which time there is often a token for it.
constexpr std::size_t kRefusedFreelyMax = 10;
constexpr std::chrono::seconds kSlowedDownFor(1);
constexpr std::string_view kUnused = "nothing was asked for";
constexpr std::string_view kNotUnderstood = "too many messages that can't be understood";
// Keys that a connection may prove; a client has a handful of accounts.
constexpr std::size_t kAuthenticatedMax = 16;

constexpr std::uint16_t kPolicyViolation = 1008;
constexpr std::uint16_t kServiceRestart = 1012;

// What the node does when its consumers can't keep up (outbox/pressure.hpp).
constexpr int kPressureTightens = 3;
constexpr double kTightenedFactor = 4;

bool asks_for_search(const std::vector<nostr::Filter>& filters) {
  return std::any_of(filters.begin(), filters.end(),
                     [](const auto& filter) { return filter.search.has_value(); });
}

std::string host_or(const std::string& public_host, std::string_view host) {
  return public_host.empty() ? std::string(host) : public_host;
}

bool is_in_force(const AuthSettings& auth, SystemTime now) {
  return auth.required && now >= auth.in_force_at;
}

}  // namespace

Session::Session(SessionServices& services, std::string address, std::string_view host)
    : services_(services),
      address_(std::move(address)),
      network_(net::network_of(address_, services.settings.load()->prefixes)),
      neighbourhood_(net::neighbourhood_of(address_)),
      target_{{host_or(services.settings.load()->public_host, host)}},
      challenge_(nostr::make_challenge()),
      opened_at_(services.clock.now()),
      opened_steady_(services.clock.steady()) {}

void Session::on_open(const std::shared_ptr<net::WsConnection>& connection) {
  connection_ = connection;
  executor_ = connection->executor();
  output_ = std::make_shared<ClientOutput>(connection, services_.pages, network_, [weak = weak_from_this()] {
    if (const auto session = weak.lock()) session->services_.hub.page_done(session);
  });
  services_.on_open(shared_from_this());
  // The address may have been blocked between the accept and this.
  check_address();
  const auto settings = services_.settings.load();
  if (settings->auth.challenge_at_connect || is_in_force(settings->auth, services_.clock.now())) challenge();
}

void Session::on_close(std::uint16_t, std::string_view) {
  connection_.reset();
  output_->end();
  services_.hub.leave(self());
}

void Session::on_message(net::WsOpcode opcode, std::string_view payload) {
  const auto bytes = payload.size();
  if (opcode != net::WsOpcode::text) {
    return refuse_message({Answer::notice, Reason::message_binary, {}, nostr::Verb::unknown}, bytes);
  }
  auto message = nostr::parse_client_message(payload, services_.settings.load()->limits);
  if (!message) return refuse_message(std::move(message.error()), bytes);
  if (!std::holds_alternative<nostr::CloseMessage>(*message)) has_asked_ = true;
  std::visit([&](auto&& typed) { handle(std::forward<decltype(typed)>(typed), bytes); }, std::move(*message));
}

void Session::refuse_message(nostr::MessageRefusal refusal, std::size_t bytes) {
  const bool is_event = refusal.verb == nostr::Verb::event && refusal.answer == Answer::ok;
  const bool is_close = refusal.verb == nostr::Verb::close || refusal.verb == nostr::Verb::neg_close;
  auto& rate = is_close ? services_.close_rate : services_.req_rate;
  const bool paid =
      is_event ? pays_for_event(bytes, 0, nullptr) : pays(rate, is_close ? "close" : "req", cost_of(bytes));
  if (!paid) refusal.reason = Reason::rate_limited;
  if (is_event) {
    services_.metrics.received_ws.add();
    services_.metrics.rejected.with({std::string(label_of(refusal.reason))}).add();
  }
  if (refusal.answer == Answer::closed) return end_subscription(refusal.subject, refusal.reason);
  if (refusal.answer == Answer::neg_err) return end_reconciliation(refusal.subject, refusal.reason);
  send(refusal.reply());
  if (refusal.answer == Answer::notice) bad_message(kNotUnderstood);
}

void Session::bad_message(std::string_view reason) {
  if (++bad_messages_ >= kBadMessagesMax) end(reason);
}

void Session::end(std::string_view why) {
  if (!connection_) return;
  send(nostr::notice_message(why));
  connection_->close(kPolicyViolation, why);
}

// To a client CLOSED means that nothing is open by that name; so also a refused REQ ends the subscription
// whose place it would have taken, and a refused COUNT one of the same name.
void Session::end_subscription(const std::string& sub, Reason reason) {
  challenge_for(reason);
  services_.hub.close(self(), sub);
  output_->drop_page(sub);
  send(nostr::closed_message(sub, text_of(reason)));
}

void Session::send(std::string_view text) {
  if (connection_) connection_->send_text(text);
}

void Session::challenge() {
  if (std::exchange(challenged_, true)) return;
  send(nostr::auth_message(challenge_));
}

void Session::challenge_for(Reason reason) {
  if (reason == Reason::auth_required || reason == Reason::protected_needs_auth ||
      reason == Reason::scope_needs_auth) {
    challenge();
  }
}

// A client that authenticates gets what was left out of the answer.
void Session::challenge_for(const std::vector<nostr::Filter>& filters) {
  if (authenticated_.empty() && nostr::names_private_kinds(filters)) challenge();
}

void Session::answer(const nostr::EventId& id, bool accepted, std::string_view text) {
  send(nostr::ok_message(id.hex(), accepted, text));
}

void Session::refuse(const nostr::EventId& id, Reason reason) {
  services_.metrics.rejected.with({std::string(label_of(reason))}).add();
  challenge_for(reason);
  answer(id, false, text_of(reason));
}

// The address always pays: anybody can make any number of keys, and they must not open new allowances. A key
// that was proven pays besides, whatever address it comes from. Where an operator grants an address the rates
// of several clients (limits.address_factor), its clients that have proven no key share the rates of one.
template <class Use>
auto Session::with_payers(const nostr::Pubkey* author, const Use& use) const {
  using Charge = net::RateLimiter::Charge;
  const auto factor = services_.settings.load()->address_factor;
  std::string who;
  if (authenticated_.empty()) {
    if (factor != 1) who = anonymous_of(network_);
  } else {
    const bool is_proven = author != nullptr && std::find(authenticated_.begin(), authenticated_.end(),
                                                          *author) != authenticated_.end();
    who = (is_proven ? *author : authenticated_.front()).hex();
  }
  const std::array<Charge, 2> charges{Charge{network_, neighbourhood_, factor}, Charge{who, neighbourhood_}};
  return use(std::span(charges).first(who.empty() ? 1 : 2));
}

void Session::charge(double cost) {
  if (cost > 0) with_payers(nullptr, [&](auto payers) { services_.req_rate.charge(payers, cost); });
}

bool Session::takes(net::RateLimiter& rate, double cost, const nostr::Pubkey* author) const {
  return with_payers(author, [&](auto payers) { return rate.take(payers, cost).allowed; });
}

bool Session::pays(net::RateLimiter& rate, std::string_view what, double cost, const nostr::Pubkey* author) {
  if (takes(rate, cost, author)) {
    if (refused_ > 0) --refused_;
    return true;
  }
  if (&rate != &services_.close_rate) {
    refused_ = std::min(refused_ + 1, 2 * kRefusedFreelyMax);
    if (refused_ > kRefusedFreelyMax) read_slower();
  }
  services_.refusals.refused(what, address_, services_.clock.steady());
  return false;
}

// A refusal costs the node a message's inflation, reading and answer all the same. Messages that a client has
// left behind, having sent too much and hung up, are not read one by one.
void Session::read_slower() {
  if (!connection_) return;
  services_.metrics.slowed.add();
  connection_->pause_reading();
  spawn(executor_, sleep_for(kSlowedDownFor), [session = shared_from_this()](const std::exception_ptr&) {
    const auto& connection = session->connection_;
    if (!connection) return;
    if (connection->peer_has_ended()) return connection->close(kPolicyViolation, "gone");
    connection->resume_reading();
  });
}

// Beyond the rate they are answered all the same, one a second.
void Session::pay_for_control() {
  static_cast<void>(pays(services_.req_rate, "req", kControlCost));
}

// The hub's loop is the writer's: questions of a flood of connections must not make a line there before the
// events of others. So each connection has one on its way at a time.
void Session::wait_for_hub() {
  if (!connection_) return;
  connection_->pause_reading();
  services_.hub.when_taken(resume_later());
}

// A client that asks and hangs up has left questions behind whose answers nobody waits for.
bool Session::nobody_waits() const {
  return !connection_ || connection_->peer_has_ended();
}

bool Session::pays_for_event(std::size_t bytes, std::size_t rows, const nostr::Pubkey* author) {
  const double factor =
      services_.pressure.of(outbox::PressureInput::backlog) >= kPressureTightens ? kTightenedFactor : 1;
  return pays(services_.event_rate, "event", cost_of(bytes, rows) * factor, author);
}

bool Session::is_enforced() const {
  const auto settings = services_.settings.load();
  const auto& auth = settings->auth;
  const auto now = services_.clock.now();
  if (!is_in_force(auth, now)) return false;
  const bool is_older = opened_at_ < auth.in_force_at;
  return !is_older || now >= auth.in_force_at + auth.grace;
}

void Session::check_auth() {
  asio::post(executor_, [session = shared_from_this()] {
    const auto settings = session->services_.settings.load();
    const auto& auth = settings->auth;
    const auto now = session->services_.clock.now();
    if (!session->connection_ || !is_in_force(auth, now)) return;
    if (!session->authenticated_.empty()) {
      const bool is_new = session->is_enforced() && session->rechecked_for_ != auth.in_force_at;
      if (!is_new) return;
      session->rechecked_for_ = auth.in_force_at;
      return session->check_rights();
    }
    // An older connection has its grace to answer.
    session->challenge();
    if (!session->must_authenticate()) return;
    const bool is_older = session->opened_at_ < auth.in_force_at;
    const auto until = is_older ? session->opened_at_ : session->opened_at_ + auth.timeout;
    if (now >= until) session->end(text_of(Reason::auth_required));
  });
}

void Session::check_use(std::chrono::milliseconds patience) {
  if (has_asked_ || services_.clock.steady() - opened_steady_ < patience) return;
  has_asked_ = true;  // looked at once
  asio::post(executor_, [session = shared_from_this()] {
    if (!session->connection_) return;
    session->services_.metrics.unused_closed.add();
    session->end(kUnused);
  });
}

void Session::check_address() {
  asio::post(executor_, [session = shared_from_this()] {
    const auto now = seconds_of(session->services_.clock.now());
    if (!session->connection_ || !session->services_.blocks.blocks()->has_address(session->address_, now))
      return;
    session->services_.metrics.addresses_blocked.add();
    session->end(text_of(Reason::address_blocked));
  });
}

void Session::handle(nostr::EventMessage message, std::size_t bytes) {
  if (lacks_rights()) {
    return read_rights([message = std::move(message), bytes](Session& session) mutable {
      session.handle(std::move(message), bytes);
    });
  }
  bad_messages_ = 0;
  services_.metrics.received_ws.add();
  const auto id = message.event.id();
  if (!pays_for_event(bytes, rows_of(message.event), &message.event.pubkey()))
    return refuse(id, Reason::rate_limited);
  if (must_authenticate()) return refuse(id, Reason::auth_required);
  if (const auto why = refusal_by_rights(message.event)) return refuse(id, *why);
  auto event = std::make_shared<const nostr::Event>(std::move(message.event));
  const nostr::Sender sender{authenticated_, false};
  const auto topics = services_.topics.topics();
  const auto blocks = services_.blocks.blocks();
  auto admitted = admit(std::move(event), Source::ws, sender, services_.settings.load()->rules, *blocks,
                        *services_.keys.keys(), *topics, services_.known, seconds_of(services_.clock.now()));
  if (!admitted) {
    if (admitted.error() == Reason::already_stored) return answer_event(id, Outcome::duplicate);
    return refuse(id, admitted.error());
  }
  if (const auto why = restrict_topics(admitted->incoming)) return refuse(id, *why);
  if (const auto why = held_back(admitted->incoming, *topics, services_.pressure)) {
    if (*why != Reason::capacity || admitted->ephemeral) return refuse(id, *why);
    admitted->incoming.held = true;
  }
  if (services_.policy.is_on()) return ask_policy(std::move(*admitted));
  take(std::move(*admitted));
}

void Session::ask_policy(Admitted admitted) {
  ++events_under_way_;
  auto source = source_of_address(address_);
  if (!authenticated_.empty()) source.authed = authenticated_.front();
  const auto event = admitted.incoming.event;
  auto tell = [session = shared_from_this(), admitted = std::move(admitted)](PolicyVerdict verdict) mutable {
    asio::dispatch(session->executor_,
                   [session, admitted = std::move(admitted), verdict = std::move(verdict)]() mutable {
                     session->follow_policy(std::move(admitted), verdict);
                     --session->events_under_way_;
                     session->close_when_answered();
                   });
  };
  if (services_.policy.ask(event, source, std::move(tell), resume_later())) return;
  services_.metrics.paused.add();
  if (connection_) connection_->pause_reading();
}

void Session::follow_policy(Admitted admitted, const PolicyVerdict& verdict) {
  const auto id = admitted.incoming.event->id();
  switch (verdict.action) {
    case PolicyAction::accept:
      return take(std::move(admitted));
    case PolicyAction::shadow_reject:
      return answer(id, true, "");
    case PolicyAction::reject:
      if (verdict.text.empty()) return refuse(id, Reason::policy_refused);
      services_.metrics.rejected.with({std::string(label_of(Reason::policy_refused))}).add();
      return answer(id, false, verdict.text);
    case PolicyAction::failed:
      if (services_.policy.accepts_on_failure()) return take(std::move(admitted));
      return refuse(id, Reason::policy_failed);
  }
}

void Session::take(Admitted admitted) {
  if (!admitted.ephemeral) return store(std::move(admitted.incoming));
  if (services_.ephemeral.send(live_of(admitted.incoming))) {
    tell_gossip(services_.gossip, admitted.incoming);
  } else {
    services_.metrics.dedupe_hits.add();
  }
  answer(admitted.incoming.event->id(), true, "");
}

// For who asks this connection to pause.
std::function<void()> Session::resume_later() {
  return [session = shared_from_this()] {
    asio::post(session->executor_, [session] {
      if (session->connection_) session->connection_->resume_reading();
    });
  };
}

void Session::store(Incoming incoming) {
  const auto id = incoming.event->id();
  ++events_under_way_;
  incoming.on_outcome = [session = shared_from_this(), id](Outcome outcome) {
    asio::dispatch(session->executor_, [session, id, outcome] {
      session->answer_event(id, outcome);
      --session->events_under_way_;
      session->close_when_answered();
    });
  };
  if (services_.writer.offer(std::move(incoming), resume_later())) return;
  services_.metrics.paused.add();
  if (connection_) connection_->pause_reading();
}

void Session::answer_event(const nostr::EventId& id, Outcome outcome) {
  switch (outcome) {
    case Outcome::stored:
      return answer(id, true, "");
    case Outcome::duplicate:
      services_.metrics.dedupe_hits.add();
      services_.duplicates.hit(id, services_.clock.now());
      return answer(id, true, text_of(Reason::already_stored));
    case Outcome::newer_version:
    case Outcome::deleted:
    case Outcome::vanished:
    case Outcome::author_blocked:
    case Outcome::event_blocked:
    case Outcome::topic_blocked:
    case Outcome::failed:
    case Outcome::storage_full:
    case Outcome::full:
      return refuse(id, reason_of(outcome));
  }
}

std::optional<Reason> Session::wrong_topics(const std::vector<nostr::Filter>& filters) const {
  if (services_.settings.load()->rules.policy == nostr::TopicPolicy::open) return std::nullopt;
  const auto topics = services_.topics.topics();
  const auto own = services_.keys.keys();
  for (const auto& filter : filters) {
    const auto* asked = filter.tag('t');
    if (asked == nullptr && own->covers(filter)) continue;
    if (asked == nullptr || asked->values().empty()) return Reason::t_required;
    for (const auto& topic : asked->values()) {
      if (!topics->is_enabled(topic)) return Reason::topic_not_enabled;
    }
  }
  return std::nullopt;
}

std::optional<Reason> Session::refusal_of(const std::vector<nostr::Filter>& filters, std::size_t bytes) {
  if (!pays(services_.req_rate, "req", cost_of_question(bytes, filters.size()))) return Reason::rate_limited;
  if (must_authenticate()) return Reason::auth_required;
  if (asks_for_search(filters)) {
    if (!services_.search) return Reason::search_unsupported;
    // The order of the log and the order of rank exclude each other.
    if (filters.front().seq_after) return Reason::search_not_here;
  }
  if (auto wrong = wrong_topics(filters)) return wrong;
  if (auto refused = refusal_by_rights(filters)) return refused;
  if (authenticated_.empty() && nostr::names_only_private_kinds(filters)) return Reason::auth_required;
  return std::nullopt;
}

void Session::handle(nostr::ReqMessage message, std::size_t bytes) {
  if (nobody_waits()) return;
  if (lacks_rights()) {
    return read_rights([message = std::move(message), bytes](Session& session) mutable {
      session.handle(std::move(message), bytes);
    });
  }
  bad_messages_ = 0;
  auto refusal = refusal_of(message.filters, bytes);
  if (refusal) return end_subscription(message.sub.text(), *refusal);
  if (asks_for_search(message.filters) && is_enforced()) return open_search(std::move(message));
  open(std::move(message));
}

void Session::open(nostr::ReqMessage message) {
  challenge_for(message.filters);
  output_->drop_page(message.sub.text());
  services_.hub.open(self(), std::move(message));
  wait_for_hub();
}

void Session::handle(nostr::CountMessage message, std::size_t bytes) {
  if (nobody_waits()) return;
  if (lacks_rights()) {
    return read_rights([message = std::move(message), bytes](Session& session) mutable {
      session.handle(std::move(message), bytes);
    });
  }
  bad_messages_ = 0;
  const auto& sub = message.sub.text();
  auto refusal = refusal_of(message.filters, bytes);
  if (!refusal && asks_for_search(message.filters)) refusal = Reason::search_not_here;
  if (refusal) return end_subscription(sub, *refusal);
  challenge_for(message.filters);
  services_.hub.count(self(), std::move(message));
  wait_for_hub();
}

// A CLOSE beyond the rate is carried out too: a subscription that stays open costs more.
void Session::handle(const nostr::CloseMessage& message, std::size_t bytes) {
  services_.hub.close(self(), message.sub.text());
  output_->drop_page(message.sub.text());
  if (pays(services_.close_rate, "close", cost_of(bytes))) {
    bad_messages_ = 0;
    return;
  }
  send(nostr::notice_message(text_of(Reason::rate_limited)));
  bad_message(text_of(Reason::rate_limited));
}

void Session::end_reconciliation(const std::string& sub, Reason reason) {
  services_.metrics.sets_refused.with({std::string(label_of(reason))}).add();
  challenge_for(reason);
  services_.hub.close_set(self(), sub);
  send(nostr::neg_err_message(sub, text_of(reason)));
}

void Session::handle(nostr::NegOpenMessage message, std::size_t bytes) {
  if (lacks_rights()) {
    return read_rights([message = std::move(message), bytes](Session& session) mutable {
      session.handle(std::move(message), bytes);
    });
  }
  bad_messages_ = 0;
  const std::vector<nostr::Filter> filters{message.filter};
  auto refusal = refusal_of(filters, bytes);
  if (!refusal && (message.filter.search || message.filter.seq_after)) refusal = Reason::neg_unsupported;
  if (refusal) return end_reconciliation(message.sub.text(), *refusal);
  challenge_for(filters);
  services_.hub.open_set(self(), std::move(message));
  wait_for_hub();
}

void Session::handle(nostr::NegMsgMessage message, std::size_t bytes) {
  bad_messages_ = 0;
  if (!takes(services_.req_rate, cost_of(bytes), nullptr)) return compare_later(std::move(message), bytes);
  services_.hub.compare(self(), std::move(message));
}

// A client waits for each answer before it goes on, so one beyond its rate is made to wait and loses nothing.
// Nothing else is read of it meanwhile.
void Session::compare_later(nostr::NegMsgMessage message, std::size_t bytes) {
  if (!connection_) return;
  services_.metrics.slowed.add();
  connection_->pause_reading();
  spawn(
      executor_, sleep_for(kSlowedDownFor),
      [session = shared_from_this(), message = std::move(message), bytes](const std::exception_ptr&) mutable {
        if (!session->connection_) return;
        session->connection_->resume_reading();
        session->handle(std::move(message), bytes);
      });
}

void Session::handle(const nostr::NegCloseMessage& message, std::size_t bytes) {
  services_.hub.close_set(self(), message.sub.text());
  if (pays(services_.close_rate, "close", cost_of(bytes))) {
    bad_messages_ = 0;
    return;
  }
  send(nostr::notice_message(text_of(Reason::rate_limited)));
  bad_message(text_of(Reason::rate_limited));
}

void Session::handle(const nostr::AuthMessage& message, std::size_t bytes) {
  bad_messages_ = 0;
  const auto& event = message.event;
  if (!pays(services_.req_rate, "req", cost_of(bytes))) {
    return answer(event.id(), false, text_of(Reason::rate_limited));
  }
  // A client that answers before it was challenged is challenged now.
  challenge();
  const auto broken = nostr::broken_auth(event, challenge_, target_, seconds_of(services_.clock.now()));
  if (broken) return answer(event.id(), false, text_of(*broken));
  if (!nostr::has_right_id(event)) return answer(event.id(), false, text_of(Reason::bad_id));
  if (!nostr::has_right_signature(event)) return answer(event.id(), false, text_of(Reason::bad_signature));
  const bool known =
      std::find(authenticated_.begin(), authenticated_.end(), event.pubkey()) != authenticated_.end();
  if (!known && authenticated_.size() >= kAuthenticatedMax) {
    return answer(event.id(), false, text_of(Reason::too_many_keys));
  }
  if (!known) {
    authenticated_.push_back(event.pubkey());
    rights_.push_back(services_.rights.watch(event.pubkey()));
    services_.hub.authenticated(self(), event.pubkey());
  }
  answer(event.id(), true, "");
  // A disabled account ends here, and not with what it asks for first.
  if (lacks_rights()) read_rights([](Session& session) { session.recheck_rights(); });
}

void Session::deliver(std::vector<net::FramePtr> frames) {
  asio::dispatch(executor_, [session = shared_from_this(), frames = std::move(frames)]() mutable {
    session->output_->add_frames(std::move(frames));
  });
}

void Session::deliver_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose) {
  asio::dispatch(executor_, [session = shared_from_this(), sub = std::move(sub), events = std::move(events),
                             eose = std::move(eose)]() mutable {
    const auto rows = events.size();
    const auto bytes = session->output_->add_page(std::move(sub), std::move(events), std::move(eose));
    session->charge(cost_of_page(rows, bytes));
  });
}

void Session::deliver_count(nostr::SubId sub, std::uint64_t found) {
  asio::dispatch(executor_, [session = shared_from_this(), sub = std::move(sub), found] {
    session->charge(cost_of_count(found));
    session->output_->add_frames({text_frame(nostr::count_message(sub, found))});
  });
}

bool Session::on_drain() {
  services_.hub.drain(self());
  return true;
}

void Session::all_answered() {
  asio::dispatch(executor_, [session = shared_from_this()] {
    session->reads_answered_ = true;
    session->close_when_answered();
  });
}

void Session::close_when_answered() {
  if (!connection_ || !reads_answered_ || events_under_way_ > 0) return;
  output_->send_rest();
  connection_->close(kServiceRestart, "service restart");
}

void Session::on_written(std::size_t bytes) {
  output_->written(bytes);
}

}  // namespace todoke::relay
