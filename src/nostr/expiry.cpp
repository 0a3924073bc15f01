#include "nostr/expiry.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace todoke::nostr {
namespace {

bool takes_exp(Kind kind) {
  return kind == kNodeDescriptor || kind == kTopicService || kind == kLabel;
}

}  // namespace

std::optional<std::int64_t> parse_decimal(std::string_view text) {
  const auto digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return parse_number<std::int64_t>(text);
}

tl::expected<std::optional<std::int64_t>, Reason> expiry_of(const Event& event) {
  std::optional<std::int64_t> earliest;
  const bool exp = takes_exp(event.kind());
  for (const auto tag : event.tags()) {
    const auto name = tag.name();
    if (name != "expiration" && !(exp && name == "exp")) continue;
    const auto at = parse_decimal(tag.value());
    if (!at) return tl::unexpected(Reason::bad_expiration);
    earliest = std::min(earliest.value_or(*at), *at);
  }
  return earliest;
}

bool is_scope(std::string_view text) {
  return text == "public" || text == "friend_plus" || text == "friend" || text == "invite";
}

tl::expected<Scope, Reason> scope_of(const Event& event) {
  if (event.kind() == kTopicService) return Scope::open;
  std::optional<std::string_view> scope;
  std::optional<std::string_view> epoch;
  bool several_epochs = false;
  for (const auto tag : event.tags()) {
    if (tag.name() == "scope") {
      // Two scopes would let a reader pick the wider one.
      if (scope) return tl::unexpected(Reason::several_scopes);
      scope = tag.value();
    } else if (tag.name() == "epoch") {
      several_epochs = epoch.has_value();
      epoch = tag.value();
    }
  }
  if (!scope) return Scope::open;
  if (!is_scope(*scope)) return tl::unexpected(Reason::unknown_scope);
  if (*scope == "public") return Scope::open;
  if (!epoch) return tl::unexpected(Reason::missing_epoch);
  if (several_epochs) return tl::unexpected(Reason::several_epochs);
  const auto number = parse_decimal(*epoch);
  if (!number) return tl::unexpected(Reason::epoch_not_integer);
  if (*number <= 0) return tl::unexpected(Reason::epoch_not_positive);
  return Scope::non_public;
}

}  // namespace todoke::nostr
