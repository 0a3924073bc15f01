#include "nostr/rules.hpp"

#include <algorithm>

#include "nostr/event_id.hpp"
#include "nostr/expiry.hpp"
#include "nostr/kind_rules.hpp"
#include "nostr/topics.hpp"
#include "nostr/vanish.hpp"

namespace todoke::nostr {
namespace {

bool in_time(std::int64_t created_at, const RuleSettings& settings, std::chrono::sys_seconds now) {
  // `now` and the bounds are sane, created_at is whatever was sent: no arithmetic with it.
  if (created_at > (now + settings.future_max).time_since_epoch().count()) return false;
  return !settings.past_max || created_at >= (now - *settings.past_max).time_since_epoch().count();
}

bool difficult_enough(const Event& event, unsigned bits_min) {
  if (bits_min == 0) return true;
  if (difficulty_of(event.id()) < bits_min) return false;
  // An author who aimed lower and was lucky did not do the work (NIP-13).
  for (const auto tag : event.tags()) {
    if (tag.name() == "nonce" && tag.size() > 2) {
      const auto aim = parse_decimal(tag[2]);
      if (aim && *aim < static_cast<std::int64_t>(bits_min)) return false;
    }
  }
  return true;
}

std::optional<Reason> broken_access_rule(const Event& event, Scope scope, const Sender& sender) {
  if (sender.trusted) return std::nullopt;
  if (scope == Scope::non_public && sender.authenticated.empty()) return Reason::scope_needs_auth;
  if (event.first_value("-")) {
    if (sender.authenticated.empty()) return Reason::protected_needs_auth;
    if (std::find(sender.authenticated.begin(), sender.authenticated.end(), event.pubkey()) ==
        sender.authenticated.end()) {
      return Reason::protected_other_author;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reason> broken_rule(const Event& event, const RuleSettings& settings, const Sender& sender,
                                  std::chrono::sys_seconds now) {
  const bool topics = settings.policy == TopicPolicy::topics;
  if (event.kind() == kAuth) return Reason::auth_kind;
  if (is_p2p_only(event.kind())) return Reason::p2p_only;
  const bool vanishes = event.kind() == kVanish;
  if (vanishes && !is_to_vanish_from(event, settings.public_host)) return Reason::vanish_elsewhere;
  if (!in_time(event.created_at(), settings, now)) return Reason::created_at_out_of_range;

  const auto expiry = expiry_of(event);
  if (!expiry) return expiry.error();
  if (*expiry && **expiry <= now.time_since_epoch().count()) return Reason::expired;

  if (topics) {
    // A person vanishes from all topics, also where no client knows of topics.
    if (!vanishes && !sender.needs_no_topic && !has_topic(event, settings.reserved_topics))
      return Reason::missing_topic;
    if (class_of(event.kind()) == KindClass::addressable && !event.first_value("d")) return Reason::missing_d;
  }

  const auto scope = scope_of(event);
  if (!scope) return scope.error();
  // An epoch numbers the keys of a non-public scope: without one, the author forgot to name the recipient.
  if (topics && event.first_value("epoch") && !event.first_value("scope")) return Reason::missing_scope;

  if (topics || event.first_value("k") == "kukuri") {
    if (const auto broken = broken_kind_rule(event)) return broken;
  }
  if (!difficult_enough(event, settings.difficulty_bits_min)) return Reason::difficulty_too_low;
  return broken_access_rule(event, *scope, sender);
}

}  // namespace todoke::nostr
