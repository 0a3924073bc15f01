// Any bytes as UTF-8, hex, JSON, a number in JSON, a date: each against a second, plain reading of the same
// rule, and what is written against what is read back.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/bytes.hpp"
#include "base/json_read.hpp"
#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "base/percent.hpp"
#include "base/sha256.hpp"
#include "base/timestamp.hpp"
#include "base/utf8.hpp"
#include "require.hpp"

namespace {

using namespace todoke;
using todoke::fuzz::require;

// The fuzzer's bound for the tree of a document (read_json) is far below this.
constexpr unsigned kDepthMax = 64;

struct Character {
  std::int32_t code = -1;
  std::size_t bytes = 0;
};

// RFC 3629 word for word: decode, then refuse what could have been shorter, surrogates and what is beyond
// Unicode.
Character plainly_read(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  if (text.empty()) return {};
  const auto first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
  if (bytes == 0 || first > 0xF7 || text.size() < bytes) return {};
  std::int32_t code = first & (0x7F >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code * 64 + (byte(i) & 0x3F);
  }
  const std::int32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

bool checked_in_pieces(std::string_view text, std::size_t piece) {
  Utf8Check check;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (!check.feed(text.substr(at, piece))) {
      require(!check.complete());
      return false;
    }
  }
  return check.complete();
}

void utf8(std::string_view text) {
  bool is_valid = true;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    const auto plain = plainly_read(text.substr(at));
    require(character_length(text.substr(at)) == plain.bytes);
    auto next = at;
    const auto code = next_character(text, next);
    require(plain.bytes == 0 ? code < 0 && next == at + 1 : code == plain.code && next == at + plain.bytes);
    is_valid = is_valid && plain.bytes != 0;
    at = next;
  }
  require(is_utf8(text) == is_valid);
  for (const std::size_t piece : {1U, 3U, 7U, 64U}) require(checked_in_pieces(text, piece) == is_valid);
  if (!is_valid) return;
  require(count_characters(text) == characters);
  const auto most = text.size() / 2;
  const auto cut = cut_between_characters(text, most);
  require(cut.size() <= most && text.starts_with(cut) && is_utf8(cut));
  require(cut.size() == text.size() || cut.size() + character_length(text.substr(cut.size())) > most);
}

void hex(std::string_view text) {
  require(to_hex(as_bytes(text)).size() == 2 * text.size());
  std::vector<std::uint8_t> bytes(text.size());
  require(from_hex(to_hex(as_bytes(text)), bytes));
  require(to_hex(bytes) == to_hex(as_bytes(text)));
  std::vector<std::uint8_t> half(text.size() / 2);
  const bool is_hex =
      text.size() % 2 == 0 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  require(from_hex(text, half) == is_hex);
  if (is_hex) require(to_hex(half) == text);
  const auto middle = text.size() / 3;
  require(sha256({text.substr(0, middle), text.substr(middle)}) == sha256({text}));
}

void write(JsonWriter& out, const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      out.null();
      break;
    case JsonValue::Kind::boolean:
      out.value(value.flag);
      break;
    case JsonValue::Kind::number:
      out.raw(value.text);
      break;
    case JsonValue::Kind::string:
      out.value(value.text);
      break;
    case JsonValue::Kind::array:
      out.begin_array();
      for (const auto& element : value.values) write(out, element);
      out.end_array();
      break;
    case JsonValue::Kind::object:
      out.begin_object();
      for (std::size_t i = 0; i < value.values.size(); ++i) {
        out.key(value.names.at(i));
        write(out, value.values[i]);
      }
      out.end_object();
      break;
  }
}

void json(std::string_view text) {
  const auto tree = read_json(text);
  if (!tree) {
    require(!tree.error().field.empty() && !tree.error().message.empty());
    return;
  }
  require(is_utf8(text) && check_json(text, kDepthMax) == JsonCheck::good);
  JsonWriter once;
  write(once, *tree);
  const auto again = read_json(once.text());
  require(again.has_value());
  JsonWriter twice;
  write(twice, *again);
  require(once.text() == twice.text());
}

// `text` as a string that is written, and as what stands between the quotes of one that is read.
void json_strings(std::string_view text) {
  std::string written;
  append_json_string(written, text);
  require(check_json(written, 1) == JsonCheck::good);
  require(escape_form(std::string_view(written).substr(1, written.size() - 2)) == EscapeForm::canonical);
  const bool has_nul = text.find('\0') != std::string_view::npos;
  const auto read = read_json(written);
  require(read.has_value() != has_nul);
  if (read && is_utf8(text)) require(read->text == text);

  bool is_escaped = false;
  for (const char c : text) {
    if (static_cast<std::uint8_t>(c) < 0x20 || (c == '"' && !is_escaped)) return;
    is_escaped = c == '\\' && !is_escaped;
  }
  if (is_escaped) return;
  if (!is_utf8(text)) return;
  const auto quoted = '"' + std::string(text) + '"';
  const auto form = escape_form(text);
  require((form == EscapeForm::malformed) == (check_json(quoted, 1) == JsonCheck::not_json));
  const auto decoded = read_json(quoted);
  if (form == EscapeForm::malformed || form == EscapeForm::lone_surrogate) require(!decoded);
  if (!decoded) return;
  std::string rewritten;
  append_json_string(rewritten, decoded->text);
  require((rewritten == quoted) == (form == EscapeForm::canonical));
}

bool is_json_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

void integers(std::string_view text) {
  std::optional<std::int64_t> plain;
  std::int64_t value = 0;
  const auto read_to = std::from_chars(std::to_address(text.begin()), std::to_address(text.end()), value);
  const bool is_whole = read_to.ec == std::errc() && read_to.ptr == std::to_address(text.end());
  if (is_json_integer(text) && is_whole) plain = value;
  JsonReader reader;
  auto document = reader.read('[' + std::string(text) + ']');
  od::array array;
  if (document.get_array().get(array) != simdjson::SUCCESS) return;
  auto begin = array.begin();
  if (begin.error() != simdjson::SUCCESS || begin == array.end()) return require(!plain);
  od::value first;
  if ((*begin).get(first) != simdjson::SUCCESS) return require(!plain);
  const auto read = read_integer(first);
  // Reading in passing sees one value and not what follows it.
  if (plain || is_json_integer(text)) require(read == plain);
}

void dates(std::string_view text) {
  using namespace std::chrono;
  const auto has_year_of_text = [](SystemTime time) {
    const auto year = static_cast<int>(year_month_day(floor<days>(time)).year());
    return year >= 1678 && year <= 2261;
  };
  if (const auto time = parse_timestamp(text); time && has_year_of_text(*time)) {
    const auto written = format_timestamp(*time);
    require(parse_timestamp(written) == *time && format_timestamp(*parse_timestamp(written)) == written);
    require(parse_timestamp(format_timestamp(*time, 0)) == floor<seconds>(*time));
  }
  if (const auto time = parse_http_date(std::string(text)); time && has_year_of_text(*time)) {
    require(parse_http_date(format_http_date(*time)) == *time);
  }
}

void percents(std::string_view text) {
  const auto encoded = percent_encode(text);
  const auto decoded = percent_decode(encoded);
  require(decoded.has_value() == (is_utf8(text) && text.find('\0') == std::string_view::npos));
  if (decoded) require(*decoded == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  utf8(text);
  hex(text);
  json(text);
  json_strings(text);
  integers(text);
  dates(text);
  percents(text);
  return 0;
}
