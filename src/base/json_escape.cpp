#include "base/json_escape.hpp"

#include <array>
#include <cstddef>
#include <optional>

#include "base/utf8.hpp"

namespace todoke {
namespace {

constexpr char kVerbatim = 0;
constexpr char kLong = 'u';

// For each byte: kVerbatim, the letter of its short escape, or kLong.
constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> escapes{};
  for (std::size_t c = 0; c < 0x20; ++c) escapes[c] = kLong;
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  escapes['\b'] = 'b';
  escapes['\f'] = 'f';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  return escapes;
}

constexpr auto kEscapes = make_escapes();

char escape_of(char c) {
  return kEscapes[static_cast<unsigned char>(c)];
}

struct CodeUnit {
  unsigned value = 0;
  bool lower_case = true;
};

// The four digits after \u.
std::optional<CodeUnit> code_unit(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  CodeUnit unit;
  for (const char c : digits.substr(0, 4)) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A' + 10);
      unit.lower_case = false;
    } else {
      return std::nullopt;
    }
    unit.value = unit.value * 16 + digit;
  }
  return unit;
}

constexpr std::size_t kLongEscapeBytes = 6;  // \u0000

bool is_high_surrogate(unsigned unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low_surrogate(unsigned unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// With U+FFFD instead of each byte that is no part of a character.
std::string replace_invalid(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const auto length = character_length(text);
    valid += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  if (is_utf8(text)) {
    append_valid_json_string(out, text);
  } else {
    append_valid_json_string(out, replace_invalid(text));
  }
}

bool append_valid_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out.push_back('"');
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char escape = escape_of(text[i]);
    if (escape == kVerbatim) [[likely]]
      continue;
    out.append(text, written, i - written);
    out.push_back('\\');
    out.push_back(escape);
    if (escape == kLong) {
      const auto byte = static_cast<unsigned char>(text[i]);
      out += {'0', '0', kHex[byte >> 4], kHex[byte & 15]};
    }
    written = i + 1;
  }
  out.append(text, written);
  out.push_back('"');
  return written == 0;
}

EscapeForm escape_form(std::string_view raw) {
  auto form = EscapeForm::canonical;
  bool lone = false;
  for (auto at = raw.find('\\'); at != std::string_view::npos; at = raw.find('\\', at)) {
    if (at + 1 == raw.size()) return EscapeForm::malformed;
    const char letter = raw[at + 1];
    if (letter != 'u') {
      static constexpr std::string_view kShort = "\"\\nrtbf";
      if (letter == '/') {
        form = EscapeForm::other;
      } else if (kShort.find(letter) == std::string_view::npos) {
        return EscapeForm::malformed;
      }
      at += 2;
      continue;
    }
    const auto unit = code_unit(raw.substr(at + 2));
    if (!unit) return EscapeForm::malformed;
    at += kLongEscapeBytes;
    const bool needs_it = unit->value < 0x20 && escape_of(static_cast<char>(unit->value)) == kLong;
    if (!needs_it || !unit->lower_case) form = EscapeForm::other;
    if (is_high_surrogate(unit->value)) {
      const auto rest = raw.substr(at);
      const auto low = rest.starts_with("\\u") ? code_unit(rest.substr(2)) : std::nullopt;
      if (low && is_low_surrogate(low->value)) {
        at += kLongEscapeBytes;
      } else {
        lone = true;
      }
    } else if (is_low_surrogate(unit->value)) {
      lone = true;
    }
  }
  return lone ? EscapeForm::lone_surrogate : form;
}

}  // namespace todoke
