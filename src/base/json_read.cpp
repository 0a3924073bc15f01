#include "base/json_read.hpp"

namespace todoke {
namespace {

constexpr std::string_view kJsonSpace = " \t\n\r";

bool is_json_digit(char c) {
  return c >= '0' && c <= '9';
}

// Skips the digits at the start of `text`; false when there are none.
bool skip_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_json_digit(text[count])) ++count;
  text.remove_prefix(count);
  return count > 0;
}

// By the grammar, of any size: simdjson refuses numbers that fit no machine type.
bool is_number(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  if (token.size() > 1 && token[0] == '0' && is_json_digit(token[1])) return false;
  if (!skip_digits(token)) return false;
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    if (!skip_digits(token)) return false;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    if (token.starts_with('+') || token.starts_with('-')) token.remove_prefix(1);
    if (!skip_digits(token)) return false;
  }
  return token.empty();
}

bool is_string(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' && token.back() == '"' &&
         escape_form(token.substr(1, token.size() - 2)) != EscapeForm::malformed;
}

bool is_scalar(std::string_view token) {
  return is_string(token) || token == "true" || token == "false" || token == "null" || is_number(token);
}

JsonCheck check_value(od::value& value, unsigned depth_left);

JsonCheck check_array(od::array& array, unsigned depth_left) {
  for (auto element : array) {
    od::value value;
    if (std::move(element).get(value) != simdjson::SUCCESS) return JsonCheck::not_json;
    if (const auto check = check_value(value, depth_left); check != JsonCheck::good) return check;
  }
  return JsonCheck::good;
}

JsonCheck check_object(od::object& object, unsigned depth_left) {
  for (auto member : object) {
    od::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return JsonCheck::not_json;
    if (!is_string(quoted_name(field))) return JsonCheck::not_json;
    auto value = field.value();
    if (const auto check = check_value(value, depth_left); check != JsonCheck::good) return check;
  }
  return JsonCheck::good;
}

JsonCheck check_value(od::value& value, unsigned depth_left) {
  od::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) return JsonCheck::not_json;
  if (type == od::json_type::array) {
    od::array array;
    if (depth_left == 0) return JsonCheck::too_deep;
    if (value.get_array().get(array) != simdjson::SUCCESS) return JsonCheck::not_json;
    return check_array(array, depth_left - 1);
  }
  if (type == od::json_type::object) {
    od::object object;
    if (depth_left == 0) return JsonCheck::too_deep;
    if (value.get_object().get(object) != simdjson::SUCCESS) return JsonCheck::not_json;
    return check_object(object, depth_left - 1);
  }
  if (!is_scalar(without_trailing_space(value.raw_json_token()))) return JsonCheck::not_json;
  // The iterator steps over other scalars by itself, but would take a string before a colon for a key and go
  // on.
  od::raw_json_string passed;
  if (type == od::json_type::string && value.get_raw_json_string().get(passed) != simdjson::SUCCESS) {
    return JsonCheck::not_json;
  }
  return JsonCheck::good;
}

JsonReader& check_reader() {
  thread_local JsonReader reader;
  return reader;
}

}  // namespace

std::string_view quoted_name(od::field& field) {
  // From the opening quote of the name to its colon.
  const char* name = field.key().raw() - 1;
  const std::string_view before(name, static_cast<std::size_t>(field.value().raw_json_token().data() - name));
  return without_trailing_space(before.substr(0, before.rfind(':')));
}

std::string_view without_trailing_space(std::string_view token) {
  const auto last = token.find_last_not_of(kJsonSpace);
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

simdjson::simdjson_result<od::document> JsonReader::read(std::string_view text) {
  const auto wanted = text.size() + simdjson::SIMDJSON_PADDING;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  text.copy(buffer_.data(), text.size());
  size_ = text.size();
  return parser_.iterate(buffer_.data(), size_, buffer_.size());
}

JsonReader& thread_reader() {
  thread_local JsonReader reader;
  return reader;
}

std::optional<JsonString> read_string(od::value& value) {
  auto token = std::string_view(value.raw_json_token());
  if (token.empty() || token.front() != '"') return std::nullopt;
  if (token.back() != '"') token = without_trailing_space(token);
  if (token.size() < 2 || token.back() != '"') return std::nullopt;
  JsonString string;
  string.raw = token.substr(1, token.size() - 2);
  if (string.raw.find('\\') == std::string_view::npos) {
    od::raw_json_string passed;
    if (value.get_raw_json_string().get(passed) != simdjson::SUCCESS) return std::nullopt;
    string.text = string.raw;
    return string;
  }
  string.form = escape_form(string.raw);
  if (string.form == EscapeForm::malformed) return std::nullopt;
  if (string.form == EscapeForm::lone_surrogate) return string;
  if (value.get_string().get(string.text) != simdjson::SUCCESS) return std::nullopt;
  return string;
}

std::optional<std::int64_t> read_integer(od::value& value) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

JsonCheck check_json(std::string_view text, unsigned depth_max) {
  od::document document;
  if (check_reader().read(text).get(document) != simdjson::SUCCESS) return JsonCheck::not_json;
  od::json_type type;
  if (document.type().get(type) != simdjson::SUCCESS) return JsonCheck::not_json;
  if (type != od::json_type::array && type != od::json_type::object) {
    std::string_view token;
    od::raw_json_string passed;
    bool good = document.raw_json_token().get(token) == simdjson::SUCCESS;
    if (type == od::json_type::string) {
      good = good && document.get_raw_json_string().get(passed) == simdjson::SUCCESS && at_end(document);
    } else {
      token = text.substr(text.find_first_not_of(kJsonSpace));
    }
    return good && is_scalar(without_trailing_space(token)) ? JsonCheck::good : JsonCheck::not_json;
  }
  if (depth_max == 0) return JsonCheck::too_deep;
  auto check = JsonCheck::not_json;
  if (type == od::json_type::array) {
    od::array array;
    if (document.get_array().get(array) != simdjson::SUCCESS) return JsonCheck::not_json;
    check = check_array(array, depth_max - 1);
  } else {
    od::object object;
    if (document.get_object().get(object) != simdjson::SUCCESS) return JsonCheck::not_json;
    check = check_object(object, depth_max - 1);
  }
  if (check != JsonCheck::good) return check;
  return at_end(document) ? JsonCheck::good : JsonCheck::not_json;
}

}  // namespace todoke
