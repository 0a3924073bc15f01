#include "relay/policy_protocol.hpp"

#include <utility>

#include "base/json_value.hpp"
#include "base/json_writer.hpp"

namespace todoke::relay {
namespace {

std::optional<PolicyAction> action_of(std::string_view name) {
  if (name == "accept") return PolicyAction::accept;
  if (name == "reject") return PolicyAction::reject;
  if (name == "shadowReject") return PolicyAction::shadow_reject;
  return std::nullopt;
}

// Empty where the member is missing or no text.
std::string_view text_member(const JsonValue& object, std::string_view name) {
  const auto* member = object.member(name);
  if (member == nullptr || !member->is(JsonValue::Kind::string)) return {};
  return member->text;
}

}  // namespace

PolicySource source_of_address(const std::string& address) {
  return {address.find(':') == std::string::npos ? "IP4" : "IP6", address};
}

std::string policy_question(const nostr::Event& event, const PolicySource& source,
                            std::chrono::sys_seconds received_at) {
  JsonWriter json;
  json.begin_object().member("type", "new").key("event").raw(event.json());
  json.member("receivedAt", received_at.time_since_epoch().count());
  json.member("sourceType", source.type).member("sourceInfo", source.info);
  if (source.authed) json.member("authed", source.authed->hex());
  json.end_object();
  return std::move(json).text() + "\n";
}

tl::expected<PolicyAnswer, std::string> read_policy_answer(std::string_view line) {
  const auto read = read_json(line);
  if (!read) return tl::unexpected(read.error().text());
  if (!read->is(JsonValue::Kind::object)) return tl::unexpected<std::string>("must be an object");
  const auto id = nostr::EventId::from_hex(text_member(*read, "id"));
  if (!id) return tl::unexpected<std::string>("id must be that of an event");
  const auto action = action_of(text_member(*read, "action"));
  if (!action) return tl::unexpected<std::string>("action must be accept, reject or shadowReject");
  PolicyAnswer answer{*id, {*action}};
  const auto text = text_member(*read, "msg");
  if (*action == PolicyAction::reject && text.size() <= kPolicyTextBytesMax) answer.verdict.text = text;
  return answer;
}

}  // namespace todoke::relay
