#include "users/event_json.hpp"

#include "nostr/texts.hpp"

namespace todoke::users {
namespace {

constexpr std::int64_t kEventTextMax = 200'000;

}  // namespace

api::Schema event_schema(std::string_view meaning) {
  return api::either_of({api::any_object("The event."), api::text_up_to(kEventTextMax, "The event as JSON.")},
                        meaning);
}

api::Schema given_event() {
  return api::named("Event", api::any_object("A signed event (NIP-01)."));
}

Checked<nostr::Event> event_in(const Desk& desk, const api::Call& call, std::string_view member) {
  const auto* value = call.body.member(member);
  if (value == nullptr) return bad_field(member, "is required");
  const auto text = value->is(JsonValue::Kind::string) ? value->text : json_of(*value);
  auto event = nostr::parse_event(text, desk.settings()->node.event);
  if (!event) return bad_field(member, std::string("is no event: ").append(text_of(event.error().reason)));
  return std::move(*event);
}

}  // namespace todoke::users
