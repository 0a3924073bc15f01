#include "base/json_value.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_read.hpp"
#include "base/json_writer.hpp"
#include "base/utf8.hpp"

namespace todoke {
namespace {

// Of a member's name in a path: it comes from outside and is shown in answers.
constexpr std::size_t kNameBytesShown = 64;

// Makes a tree of text that is known to be JSON. Each function gives false when something is refused; why()
// says what.
class TreeReader {
 public:
  bool read_value(od::value value, JsonValue& out, const std::string& path) {
    switch (value.type().value()) {
      case od::json_type::array:
        out.kind = JsonValue::Kind::array;
        return read_elements(value.get_array().value(), out, path);
      case od::json_type::object:
        out.kind = JsonValue::Kind::object;
        return read_members(value.get_object().value(), out, path);
      case od::json_type::string:
        out.kind = JsonValue::Kind::string;
        return read_text(value, out.text, path);
      case od::json_type::number:
        out.kind = JsonValue::Kind::number;
        out.text = without_trailing_space(value.raw_json_token());
        return true;
      case od::json_type::boolean:
        out.kind = JsonValue::Kind::boolean;
        out.flag = value.raw_json_token().starts_with('t');
        return true;
      case od::json_type::null:
        return true;
    }
    return true;
  }

  [[nodiscard]] BadField& why() { return why_; }

 private:
  bool refuse_at(std::string_view path, std::string_view message) {
    why_ = {std::string(path.empty() ? kWholeDocument : path), std::string(message)};
    return false;
  }

  bool read_elements(od::array array, JsonValue& out, const std::string& path) {
    for (auto element : array) {
      const auto inner = path_of(path, out.values.size());
      if (!read_value(element.value(), out.values.emplace_back(), inner)) return false;
    }
    return true;
  }

  bool read_members(od::object object, JsonValue& out, const std::string& path) {
    for (auto member : object) {
      od::field field = std::move(member).value_unsafe();
      std::string name;
      if (!read_name(field, name, path)) return false;
      const auto inner = path_of(path, name);
      if (std::find(out.names.begin(), out.names.end(), name) != out.names.end())
        return refuse_at(inner, "is there twice");
      if (out.names.size() == kTreeMembersMax) return refuse_at(path, "has too many members");
      out.names.push_back(std::move(name));
      if (!read_value(field.value(), out.values.emplace_back(), inner)) return false;
    }
    return true;
  }

  bool read_name(od::field& field, std::string& name, const std::string& path) {
    const auto quoted = quoted_name(field);
    const auto raw = quoted.substr(1, quoted.size() - 2);
    if (escape_form(raw) == EscapeForm::lone_surrogate) return refuse_half(path);
    name = raw.find('\\') == std::string_view::npos ? raw : std::string_view(field.unescaped_key().value());
    return refuse_nul(name, path);
  }

  bool read_text(od::value& value, std::string& out, const std::string& path) {
    const auto string = read_string(value);
    if (!string || string->form == EscapeForm::lone_surrogate) return refuse_half(path);
    out = string->text;
    return refuse_nul(out, path);
  }

  bool refuse_half(const std::string& path) { return refuse_at(path, "holds half of a surrogate pair"); }
  bool refuse_nul(const std::string& text, const std::string& path) {
    return text.find('\0') == std::string::npos || refuse_at(path, "holds the character U+0000");
  }

  BadField why_;
};

void write_value(JsonWriter& json, const JsonValue& value) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null:
      json.null();
      return;
    case Kind::boolean:
      json.value(value.flag);
      return;
    case Kind::number:
      json.raw(value.text);
      return;
    case Kind::string:
      json.value(value.text);
      return;
    case Kind::array:
      json.begin_array();
      for (const auto& element : value.values) write_value(json, element);
      json.end_array();
      return;
    case Kind::object:
      json.begin_object();
      for (std::size_t i = 0; i < value.names.size(); ++i) {
        json.key(value.names[i]);
        write_value(json, value.values[i]);
      }
      json.end_object();
      return;
  }
}

}  // namespace

tl::unexpected<BadField> bad_field(std::string_view field, std::string_view message) {
  return tl::unexpected<BadField>(BadField{std::string(field), std::string(message)});
}

const JsonValue* JsonValue::member(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return nullptr;
  const auto& value = values[static_cast<std::size_t>(found - names.begin())];
  return value.is(Kind::null) ? nullptr : &value;
}

std::string path_of(std::string_view parent, std::string_view name) {
  const auto shown = cut_between_characters(name, kNameBytesShown);
  return parent.empty() ? std::string(shown) : fmt::format("{}.{}", parent, shown);
}

std::string path_of(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent.empty() ? kWholeDocument : parent, index);
}

Checked<JsonValue> read_json(std::string_view text) {
  if (!is_utf8(text)) return bad_field(kWholeDocument, "is no valid UTF-8");
  const auto check = check_json(text, kTreeDepthMax);
  if (check == JsonCheck::too_deep) return bad_field(kWholeDocument, "is nested too deeply");
  if (check == JsonCheck::not_json) return bad_field(kWholeDocument, "is no valid JSON");
  // As the only element of an array, because simdjson gives a document that is a scalar no value.
  auto document = thread_reader().read(fmt::format("[{}]", text));
  od::array whole = document.get_array();
  TreeReader reader;
  JsonValue value;
  for (auto element : whole) {
    if (!reader.read_value(element.value(), value, ""))
      return tl::unexpected<BadField>(std::move(reader.why()));
  }
  return value;
}

std::string json_of(const JsonValue& value) {
  JsonWriter json;
  write_value(json, value);
  return std::move(json).text();
}

}  // namespace todoke
