#include "nostr/relay_message.hpp"

#include <array>
#include <utility>
#include <vector>

#include "base/json_read.hpp"
#include "nostr/event_parse.hpp"

namespace todoke::nostr {
namespace {

using RelayVerb = RelayMessage::Verb;

// The longest message has four elements (OK).
constexpr std::size_t kElementsRead = 4;

struct Element {
  od::json_type type = od::json_type::null;
  std::string text;  // decoded where it is a string, JSON otherwise
};

std::optional<Element> read_element(od::value& value) {
  Element element;
  if (value.type().get(element.type) != simdjson::SUCCESS) return std::nullopt;
  if (element.type == od::json_type::string) {
    const auto read = read_string(value);
    if (!read) return std::nullopt;
    element.text = read->text;
  } else if (element.type == od::json_type::object) {
    od::object object;
    std::string_view json;
    if (value.get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
    if (object.raw_json().get(json) != simdjson::SUCCESS) return std::nullopt;
    element.text = without_trailing_space(json);
  } else if (element.type == od::json_type::array) {
    od::array array;
    std::string_view json;
    if (value.get_array().get(array) != simdjson::SUCCESS) return std::nullopt;
    if (array.raw_json().get(json) != simdjson::SUCCESS) return std::nullopt;
    element.text = without_trailing_space(json);
  } else {
    element.text = without_trailing_space(value.raw_json_token());
  }
  return element;
}

std::optional<std::vector<Element>> read_elements(std::string_view text) {
  auto document = thread_reader().read(text);
  od::array array;
  if (document.get_array().get(array) != simdjson::SUCCESS) return std::nullopt;
  std::vector<Element> elements;
  for (auto item : array) {
    od::value value;
    if (item.get(value) != simdjson::SUCCESS) return std::nullopt;
    auto element = read_element(value);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
    if (elements.size() == kElementsRead) break;
  }
  return elements;
}

RelayVerb verb_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, RelayVerb>, 9> kVerbs{{{"EVENT", RelayVerb::event},
                                                                          {"OK", RelayVerb::ok},
                                                                          {"EOSE", RelayVerb::eose},
                                                                          {"CLOSED", RelayVerb::closed},
                                                                          {"NOTICE", RelayVerb::notice},
                                                                          {"COUNT", RelayVerb::count},
                                                                          {"AUTH", RelayVerb::auth},
                                                                          {"NEG-MSG", RelayVerb::neg_msg},
                                                                          {"NEG-ERR", RelayVerb::neg_err}}};
  for (const auto& [known, verb] : kVerbs) {
    if (known == name) return verb;
  }
  return RelayVerb::other;
}

bool is_text(const std::vector<Element>& elements, std::size_t at) {
  return at < elements.size() && elements[at].type == od::json_type::string;
}

bool is_object(const std::vector<Element>& elements, std::size_t at) {
  return at < elements.size() && elements[at].type == od::json_type::object;
}

}  // namespace

std::optional<RelayMessage> parse_relay_message(std::string_view text) {
  if (check_json(text, kJsonDepthMax) != JsonCheck::good) return std::nullopt;
  auto elements = read_elements(text);
  if (!elements || !is_text(*elements, 0)) return std::nullopt;
  RelayMessage message;
  message.verb = verb_of((*elements)[0].text);
  if (message.verb == RelayVerb::other) return message;
  if (!is_text(*elements, 1)) return std::nullopt;
  if (message.verb == RelayVerb::notice || message.verb == RelayVerb::auth) {
    message.text = std::move((*elements)[1].text);
    return message;
  }
  message.subject = std::move((*elements)[1].text);
  if (message.verb == RelayVerb::event || message.verb == RelayVerb::count) {
    if (!is_object(*elements, 2)) return std::nullopt;
    message.json = std::move((*elements)[2].text);
  } else if (message.verb == RelayVerb::ok) {
    if (elements->size() < 3 || (*elements)[2].type != od::json_type::boolean) return std::nullopt;
    message.accepted = (*elements)[2].text == "true";
    if (is_text(*elements, 3)) message.text = std::move((*elements)[3].text);
  } else if (message.verb == RelayVerb::neg_msg) {
    if (!is_text(*elements, 2)) return std::nullopt;
    message.text = std::move((*elements)[2].text);
  } else if (message.verb == RelayVerb::eose) {
    if (elements->size() > 2 && (*elements)[2].type == od::json_type::array)
      message.json = std::move((*elements)[2].text);
  } else if (is_text(*elements, 2)) {
    message.text = std::move((*elements)[2].text);
  }
  return message;
}

}  // namespace todoke::nostr
