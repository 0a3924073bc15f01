#include "orders/core/text.hpp"

#include <algorithm>
#include <stdexcept>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace todoke::orders {

std::string to_nfc(std::string_view text) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const auto* nfc = icu::Normalizer2::getNFCInstance(status);
  std::string normal;
  icu::StringByteSink<std::string> sink(&normal);
  const icu::StringPiece piece(text.data(), static_cast<int>(text.size()));
  if (U_SUCCESS(status)) nfc->normalizeUTF8(0, piece, sink, nullptr, status);
  if (U_FAILURE(status)) throw std::runtime_error("Unicode normalization is not available");
  return normal;
}

std::string without_controls(std::string_view text) {
  const auto units = icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
  icu::UnicodeString kept;
  for (std::int32_t at = 0; at < units.length(); at = units.moveIndex32(at, 1)) {
    const auto code = units.char32At(at);
    const bool does_something = u_iscntrl(code) != 0 || u_hasBinaryProperty(code, UCHAR_BIDI_CONTROL) != 0;
    kept.append(does_something ? UChar32('?') : code);
  }
  std::string bytes;
  return kept.toUTF8String(bytes);
}

}  // namespace todoke::orders
