#include "nostr/event_parse.hpp"

#include "nostr/event_reader.hpp"

namespace todoke::nostr {
namespace {

tl::expected<Event, Reason> attempt(std::string_view text, const EventLimits& limits) {
  auto& json = thread_reader();
  auto& reader = thread_event_reader();
  od::document document;
  if (json.read(text).get(document) != simdjson::SUCCESS) return tl::unexpected(Reason::message_not_json);
  od::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) {
    return tl::unexpected(Reason::event_not_object);
  }
  if (const auto refused = reader.read(object, limits)) return tl::unexpected(*refused);
  if (!at_end(document)) return tl::unexpected(Reason::message_not_json);
  if (reader.skipped()) {
    const auto check = check_json(text, kJsonDepthMax);
    if (check == JsonCheck::too_deep) return tl::unexpected(Reason::message_too_deep);
    if (check == JsonCheck::not_json) return tl::unexpected(Reason::message_not_json);
  }
  const auto first = json.text().find('{');
  auto event = reader.finish(json.text().substr(first), limits);
  if (!event) return tl::unexpected(Reason::event_too_large);
  return std::move(*event);
}

std::string rescue_id_of_event(std::string_view text) {
  od::document document;
  od::object object;
  if (thread_reader().read(text).get(document) != simdjson::SUCCESS) return {};
  if (document.get_object().get(object) != simdjson::SUCCESS) return {};
  return id_for_answer(object);
}

}  // namespace

tl::expected<Event, EventRefusal> parse_event(std::string_view text, const EventLimits& limits) {
  const auto refuse_with = [](Reason reason, std::string id = {}) {
    return tl::unexpected(EventRefusal{reason, std::move(id)});
  };
  if (text.size() > kEventTextBytesMax) return refuse_with(Reason::message_too_long);
  auto event = attempt(text, limits);
  if (event) return std::move(*event);
  // The reading above stops at the first fault it sees; whether that is one of JSON itself is asked only now.
  switch (check_json(text, kJsonDepthMax)) {
    case JsonCheck::good:
      break;
    case JsonCheck::too_deep:
      return refuse_with(Reason::message_too_deep);
    case JsonCheck::not_json:
      return refuse_with(Reason::message_not_json);
  }
  return refuse_with(event.error(), rescue_id_of_event(text));
}

}  // namespace todoke::nostr
