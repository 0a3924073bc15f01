#include "orders/core/json_value.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <simdjson.h>

#include "orders/core/text.hpp"

namespace todoke::orders {
namespace {

// Of a member's name in a path: it comes from outside and is shown in answers.
constexpr std::size_t kNameBytesShown = 64;

constexpr std::uint32_t kHighSurrogate = 0xD800;
constexpr std::uint32_t kLowSurrogate = 0xDC00;
constexpr std::uint32_t kSurrogateEnd = 0xE000;
constexpr std::uint32_t kBeyondBasic = 0x10000;

std::string_view shown(std::string_view name) {
  if (name.size() <= kNameBytesShown) return name;
  auto end = kNameBytesShown;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end);
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6U);
    put(0x80 | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12U);
    put(0x80 | (c >> 6U & 0x3FU));
    put(0x80 | (c & 0x3FU));
  } else {
    put(0xF0 | c >> 18U);
    put(0x80 | (c >> 12U & 0x3FU));
    put(0x80 | (c >> 6U & 0x3FU));
    put(0x80 | (c & 0x3FU));
  }
}

// Every read_… gives false when the text is refused; why() says why.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool read_document(JsonValue& value) {
    if (!read_value(value, "", 0)) return false;
    skip_space();
    return rest_.empty() || malformed("something follows its end");
  }

  [[nodiscard]] BadField& why() { return why_; }

 private:
  bool refuse_at(std::string_view path, std::string_view message) {
    why_ = {std::string(path.empty() ? kWholeDocument : path), std::string(message)};
    return false;
  }
  bool malformed(std::string_view what) { return refuse_at("", fmt::format("is no valid JSON: {}", what)); }

  void skip_space() {
    const auto next = rest_.find_first_not_of(" \t\n\r");
    rest_.remove_prefix(next == std::string_view::npos ? rest_.size() : next);
  }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::size_t take_digits() {
    std::size_t count = 0;
    while (count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9') ++count;
    rest_.remove_prefix(count);
    return count;
  }

  bool read_value(JsonValue& value, const std::string& path, unsigned depth) {
    skip_space();
    if (rest_.starts_with('{') || rest_.starts_with('[')) {
      if (depth == kJsonDepthMax) return refuse_at("", "is nested too deeply");
      return take('{') ? read_members(value, path, depth) : read_elements(value, path, depth);
    }
    if (take('"')) {
      value.kind = JsonValue::Kind::string;
      return read_string(value.text, path);
    }
    if (take_word("null")) return true;
    const bool is_true = take_word("true");
    if (is_true || take_word("false")) {
      value.kind = JsonValue::Kind::boolean;
      value.flag = is_true;
      return true;
    }
    value.kind = JsonValue::Kind::number;
    return read_number(value.text);
  }

  bool read_members(JsonValue& value, const std::string& path, unsigned depth) {
    value.kind = JsonValue::Kind::object;
    skip_space();
    if (take('}')) return true;
    do {
      if (!read_member(value, path, depth)) return false;
      skip_space();
    } while (take(','));
    return take('}') || malformed("an object does not end");
  }

  bool read_member(JsonValue& value, const std::string& path, unsigned depth) {
    std::string name;
    skip_space();
    if (!take('"')) return malformed("the name of a member is missing");
    if (!read_string(name, path)) return false;
    skip_space();
    if (!take(':')) return malformed("a colon is missing");
    const auto inner = path_of(path, name);
    if (std::find(value.names.begin(), value.names.end(), name) != value.names.end()) {
      return refuse_at(inner, "is there twice");
    }
    if (value.names.size() == kJsonMembersMax) return refuse_at(path, "has too many members");
    value.names.push_back(std::move(name));
    return read_value(value.values.emplace_back(), inner, depth + 1);
  }

  bool read_elements(JsonValue& value, const std::string& path, unsigned depth) {
    value.kind = JsonValue::Kind::array;
    take('[');
    skip_space();
    if (take(']')) return true;
    do {
      const auto inner = path_of(path, value.values.size());
      if (!read_value(value.values.emplace_back(), inner, depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take(']') || malformed("an array does not end");
  }

  bool read_number(std::string& out) {
    const auto begin = rest_;
    take('-');
    const bool zero = rest_.starts_with('0');
    const auto whole = take_digits();
    if (whole == 0) return malformed("a value is missing");
    bool good = !zero || whole == 1;
    if (take('.')) good = take_digits() > 0 && good;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      good = take_digits() > 0 && good;
    }
    out = begin.substr(0, begin.size() - rest_.size());
    return good || malformed("a number is malformed");
  }

  // After the opening quote.
  bool read_string(std::string& out, const std::string& path) {
    while (!take('"')) {
      const auto special = std::find_if(rest_.begin(), rest_.end(), [](char c) {
        return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
      });
      const auto plain = static_cast<std::size_t>(special - rest_.begin());
      out.append(rest_.substr(0, plain));
      rest_.remove_prefix(plain);
      if (rest_.starts_with('"')) continue;
      if (!take('\\')) return malformed("a string does not end or holds a control character");
      if (!read_escape(out, path)) return false;
    }
    return true;
  }

  bool read_escape(std::string& out, const std::string& path) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const auto known = rest_.empty() ? std::string_view::npos : kEscapes.find(rest_.front());
    if (known != std::string_view::npos) {
      out.push_back(kMeanings[known]);
      rest_.remove_prefix(1);
      return true;
    }
    std::uint32_t c = 0;
    if (!take('u') || !read_hex(c)) return malformed("an escape is malformed");
    if (c == 0) return refuse_at(path, "holds the character U+0000");
    if (c >= kHighSurrogate && c < kSurrogateEnd) {
      std::uint32_t low = 0;
      if (c < kLowSurrogate && take_word("\\u") && !read_hex(low)) return malformed("an escape is malformed");
      if (low < kLowSurrogate || low >= kSurrogateEnd)
        return refuse_at(path, "holds half of a surrogate pair");
      c = kBeyondBasic + ((c - kHighSurrogate) << 10U) + (low - kLowSurrogate);
    }
    append_utf8(out, c);
    return true;
  }

  bool read_hex(std::uint32_t& value) {
    constexpr std::size_t kDigits = 4;
    const auto digits = rest_.substr(0, kDigits);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + kDigits) return false;
    rest_.remove_prefix(kDigits);
    return true;
  }

  std::string_view rest_;
  BadField why_;
};

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
  if (parent.empty()) return std::string(shown(name));
  return fmt::format("{}.{}", parent, shown(name));
}

std::string path_of(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent.empty() ? kWholeDocument : parent, index);
}

Checked<JsonValue> read_json(std::string_view text) {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    return bad_field(kWholeDocument, "is no valid UTF-8");
  }
  Reader reader(text);
  JsonValue value;
  if (!reader.read_document(value)) return tl::unexpected<BadField>(std::move(reader.why()));
  return value;
}

std::string_view must_be(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null:
      return "must be null";
    case JsonValue::Kind::boolean:
      return "must be true or false";
    case JsonValue::Kind::number:
      return "must be a number";
    case JsonValue::Kind::string:
      return "must be a string";
    case JsonValue::Kind::array:
      return "must be an array";
    case JsonValue::Kind::object:
      return "must be an object";
  }
  return "is of the wrong kind";
}

void JsonFields::refuse_unknown(std::span<const std::string_view> known) {
  for (const auto& name : object_.names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) offend(name, "is unknown");
  }
}

void JsonFields::require(std::string_view name) {
  if (object_.member(name) == nullptr) offend(name, "is required");
}

std::optional<std::string> JsonFields::text(std::string_view name, std::size_t characters_max) {
  const auto* value = of_kind(name, JsonValue::Kind::string);
  if (value == nullptr) return std::nullopt;
  auto normal = to_nfc(value->text);
  if (characters(normal) > characters_max) {
    offend(name, fmt::format("has more than {} characters", characters_max));
  }
  return normal;
}

std::optional<Decimal> JsonFields::number(std::string_view name) {
  const auto* value = of_kind(name, JsonValue::Kind::number);
  if (value == nullptr) return std::nullopt;
  auto parsed = Decimal::parse(value->text);
  if (parsed) return std::move(*parsed);
  offend(name, parsed.error().message);
  return std::nullopt;
}

const JsonValue* JsonFields::of_kind(std::string_view name, JsonValue::Kind kind) {
  const auto* value = object_.member(name);
  if (value == nullptr || value->is(kind)) return value;
  offend(name, must_be(kind));
  return nullptr;
}

void JsonFields::offend(std::string_view name, std::string_view message) {
  if (!offence_) offence_ = BadField{path_of(path_, name), std::string(message)};
}

void JsonFields::offend(BadField offence) {
  if (!offence_) offence_ = std::move(offence);
}

}  // namespace todoke::orders
