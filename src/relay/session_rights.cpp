// What people may do while auth.mode is required, as a session asks for it.
#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/attempt.hpp"
#include "base/bytes.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "nostr/replies.hpp"
#include "nostr/topics.hpp"
#include "relay/session.hpp"

namespace todoke::relay {

using nostr::Reason;

bool Session::lacks_rights() const {
  if (rights_failed_ || !is_enforced()) return false;
  return std::any_of(rights_.begin(), rights_.end(), [](const auto& key) { return !key->value(); });
}

void Session::read_rights(std::function<void(Session&)> then) {
  if (!connection_) return;
  connection_->pause_reading();
  KeyList unread;
  std::copy_if(rights_.begin(), rights_.end(), std::back_inserter(unread),
               [](const auto& key) { return !key->value(); });
  spawn(executor_, services_.rights.load(std::move(unread)),
        [session = shared_from_this(), then = std::move(then)](const std::exception_ptr& failure) {
          if (!session->connection_) return;
          if (failure)
            log::warning("relay", "what a key may do was not read", {{"error", describe(failure)}});
          session->connection_->resume_reading();
          // One message is refused; the next one asks again.
          session->rights_failed_ = failure != nullptr;
          then(*session);
          session->rights_failed_ = false;
        });
}

std::optional<Allowance> Session::allowance(const nostr::Pubkey* author) const {
  std::vector<RightsPtr> values;
  for (const auto& key : rights_) {
    auto value = key->value();
    if (!value) return std::nullopt;
    if (author != nullptr && key->key() == *author) return Allowance({std::move(value)});
    values.push_back(std::move(value));
  }
  return Allowance(std::move(values));
}

// A person may vanish without asking anybody.
std::optional<Reason> Session::refusal_by_rights(const nostr::Event& event) const {
  if (!is_enforced()) return std::nullopt;
  const auto allowed = allowance(&event.pubkey());
  if (!allowed) return Reason::not_stored;
  if (allowed->has_disabled_key()) return Reason::account_disabled;
  if (event.kind() == nostr::kVanish) return std::nullopt;
  if (const auto why = allowed->refusal()) return why;
  const auto settings = services_.settings.load();
  const auto& rules = settings->rules;
  if (rules.policy == nostr::TopicPolicy::open || services_.keys.keys()->contains(event.pubkey())) return {};
  // Before it is looked for: also whether it is there already is for subscribers.
  const auto topics = nostr::topics_of(event, rules.reserved_topics);
  const bool may_use_one = std::any_of(topics.begin(), topics.end(),
                                       [&](const auto& topic) { return allowed->may_use(topic.text()); });
  return topics.empty() || may_use_one ? std::nullopt : std::optional(Reason::subscription_required);
}

std::optional<Reason> Session::restrict_topics(Incoming& incoming) const {
  const auto settings = services_.settings.load();
  if (!is_enforced() || settings->rules.policy == nostr::TopicPolicy::open) return std::nullopt;
  // Neither a request to vanish nor what the node signs belongs to a topic.
  if (incoming.own || incoming.event->kind() == nostr::kVanish) return std::nullopt;
  const auto allowed = allowance(&incoming.event->pubkey());
  if (!allowed) return Reason::not_stored;
  std::erase_if(incoming.topics, [&](const auto& topic) { return !allowed->may_use(topic); });
  return incoming.topics.empty() ? std::optional(Reason::subscription_required) : std::nullopt;
}

std::optional<Reason> Session::refusal_by_rights(const std::vector<nostr::Filter>& filters) const {
  if (!is_enforced()) return std::nullopt;
  const auto allowed = allowance();
  if (!allowed) return Reason::query_failed;
  return allowed->refusal_of(filters, services_.settings.load()->rules.policy, *services_.keys.keys());
}

void Session::check_rights() {
  asio::post(executor_, [session = shared_from_this()] {
    if (!session->connection_ || session->authenticated_.empty() || !session->is_enforced()) return;
    if (session->lacks_rights()) return session->read_rights([](Session& known) { known.recheck_rights(); });
    session->recheck_rights();
  });
}

void Session::recheck_rights() {
  const auto allowed = allowance();
  if (!allowed || !is_enforced()) return;
  if (allowed->has_disabled_key()) return end(text_of(Reason::account_disabled));
  const auto policy = services_.settings.load()->rules.policy;
  services_.hub.recheck(self(), [allowed = *allowed, policy, own = services_.keys.keys()](auto filters) {
    return allowed.refusal_of(filters, policy, *own);
  });
}

// The first of the keys that may search pays.
void Session::open_search(nostr::ReqMessage message) {
  const auto payer = std::find_if(rights_.begin(), rights_.end(), [](const auto& key) {
    const auto value = key->value();
    return value && !Allowance({value}).refusal();
  });
  if (!connection_ || payer == rights_.end()) return;
  connection_->pause_reading();
  spawn(executor_, spend_and_open((*payer)->key(), std::move(message)),
        [session = shared_from_this()](const std::exception_ptr&) {});
}

Task<void> Session::spend_and_open(nostr::Pubkey payer, nostr::ReqMessage message) {
  auto request = to_hex(sha256({challenge_, " ", std::to_string(++searches_)}));
  const auto spent = co_await attempt(services_.rights.spend_search(payer, std::move(request)));
  if (!connection_) co_return;
  connection_->resume_reading();
  if (spent && *spent) {
    open(std::move(message));
    co_return;
  }
  if (!spent) log::warning("relay", "a search was not counted", {{"error", describe(spent.error())}});
  end_subscription(message.sub.text(), spent ? Reason::quota_exceeded : Reason::query_failed);
}

}  // namespace todoke::relay
