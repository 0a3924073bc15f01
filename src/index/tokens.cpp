#include "index/tokens.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "base/utf8.hpp"

namespace todoke::index {
namespace {

constexpr UChar32 kAsciiEnd = 0x80;

enum class Class : std::uint8_t { separator, word, run, symbol, ignored };

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < kAsciiEnd; });
}

bool is_ascii_word(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

bool is_unspaced(UScriptCode script) {
  constexpr std::array kScripts{USCRIPT_HAN,    USCRIPT_HIRAGANA, USCRIPT_KATAKANA,
                                USCRIPT_HANGUL, USCRIPT_BOPOMOFO, USCRIPT_THAI,
                                USCRIPT_LAO,    USCRIPT_KHMER,    USCRIPT_MYANMAR};
  return std::find(kScripts.begin(), kScripts.end(), script) != kScripts.end();
}

Class class_of(UChar32 c) {
  if (c < 0) return Class::separator;
  if (c < kAsciiEnd) return is_ascii_word(static_cast<unsigned char>(c)) ? Class::word : Class::separator;
  if ((U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)) != 0) {
    UErrorCode status = U_ZERO_ERROR;
    if (is_unspaced(uscript_getScript(c, &status))) return Class::run;
    // U+30FC and its like: of no script, but used in one.
    if (uscript_hasScript(c, USCRIPT_KATAKANA)) return Class::run;
    return Class::word;
  }
  if (u_hasBinaryProperty(c, UCHAR_EMOJI_MODIFIER)) return Class::ignored;
  // Flags are pairs of letters.
  if (u_hasBinaryProperty(c, UCHAR_REGIONAL_INDICATOR)) return Class::run;
  if (u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC)) return Class::symbol;
  return Class::separator;
}

// Where a word that is too long ends: before a character, never inside of one.
std::size_t cut(std::string_view normal, std::size_t start, std::size_t end) {
  if (end - start <= kWordBytesMax) return end;
  end = start + kWordBytesMax;
  while (end > start && U8_IS_TRAIL(static_cast<std::uint8_t>(normal[end]))) --end;
  return end;
}

class Scanner {
 public:
  Scanner(std::string_view normal, std::size_t count_max) : normal_(normal), count_max_(count_max) {
    tokens_.reserve(std::min(count_max, normal.size() / 4 + 1));
  }

  std::vector<Token> scan() {
    for (std::size_t at = 0; at < normal_.size();) {
      const auto start = at;
      const auto c = next_character(normal_, at);
      add_character(class_of(c), start, at);
    }
    end_word(normal_.size());
    end_run();
    return std::move(tokens_);
  }

 private:
  void add_character(Class kind, std::size_t start, std::size_t end) {
    if (kind == Class::ignored) return;
    if (kind != Class::word) end_word(start);
    if (kind != Class::run) end_run();
    switch (kind) {
      case Class::word:
        if (!in_word_) word_start_ = start;
        in_word_ = true;
        break;
      case Class::run:
        if (in_run_) add(last_start_, end, TokenKind::pair);
        alone_ = !in_run_;
        in_run_ = true;
        last_start_ = start;
        last_end_ = end;
        break;
      case Class::symbol:
        add(start, end, TokenKind::symbol);
        break;
      case Class::separator:
      case Class::ignored:
        break;
    }
  }

  void end_word(std::size_t end) {
    if (!in_word_) return;
    in_word_ = false;
    add(word_start_, cut(normal_, word_start_, end), TokenKind::word);
  }

  void end_run() {
    if (!in_run_) return;
    in_run_ = false;
    add(last_start_, last_end_, alone_ ? TokenKind::single : TokenKind::last);
  }

  void add(std::size_t start, std::size_t end, TokenKind kind) {
    if (tokens_.size() >= count_max_) return;
    tokens_.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint16_t>(end - start),
                       static_cast<std::uint16_t>(tokens_.size() + 1), kind});
  }

  std::string_view normal_;
  std::size_t count_max_;
  std::vector<Token> tokens_;
  bool in_word_ = false;
  std::size_t word_start_ = 0;
  bool in_run_ = false;
  std::size_t last_start_ = 0;  // the character of the run that begins the next token
  std::size_t last_end_ = 0;
  bool alone_ = false;  // it is the first of its run
};

}  // namespace

std::string normal_text(std::string_view text) {
  std::string normal;
  if (is_ascii(text)) {
    normal.resize(text.size());
    std::transform(text.begin(), text.end(), normal.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
    return normal;
  }
  auto status = U_ZERO_ERROR;
  const auto* fold = icu::Normalizer2::getNFKCCasefoldInstance(status);
  if (U_SUCCESS(status)) {
    icu::StringByteSink<std::string> sink(&normal, static_cast<std::int32_t>(text.size()));
    fold->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink,
                        nullptr, status);
  }
  if (U_FAILURE(status)) throw std::runtime_error(std::string("NFKC_Casefold: ") + u_errorName(status));
  return normal;
}

std::vector<Token> tokens_of(std::string_view normal, std::size_t count_max) {
  return Scanner(normal, std::min(count_max, kTokensMax)).scan();
}

}  // namespace todoke::index
