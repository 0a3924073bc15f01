// The negotiation of permessage-deflate (deflate.hpp).
#include <cstdint>
#include <vector>

#include "net/deflate.hpp"

namespace todoke::net {

namespace {

// More than any client sends; keeps the work for a hostile header small.
constexpr std::size_t kExtensionsMax = 16;
constexpr std::size_t kParametersMax = 16;

struct Parameter {
  std::string name;
  std::optional<std::string> value;
};

struct Extension {
  std::string name;
  std::vector<Parameter> parameters;
};

bool is_token_char(char c) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

// The grammar of Sec-WebSocket-Extensions (RFC 6455, 9.1).
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expected<std::vector<Extension>> list() {
    std::vector<Extension> extensions;
    do {
      if (extensions.size() == kExtensionsMax) return refuse("too many extensions");
      Extension extension;
      if (!token(extension.name)) return refuse("a name of an extension was expected");
      while (skip(';')) {
        if (extension.parameters.size() == kParametersMax) return refuse("too many parameters");
        Parameter parameter;
        if (!token(parameter.name)) return refuse("a name of a parameter was expected");
        if (skip('=')) {
          parameter.value.emplace();
          if (!value(*parameter.value)) return refuse("a value of a parameter was expected");
        }
        extension.parameters.push_back(std::move(parameter));
      }
      extensions.push_back(std::move(extension));
    } while (skip(','));
    skip_blanks();
    if (at_ != text_.size()) return refuse("unexpected text after an extension");
    return extensions;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool skip(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool token(std::string& into) {
    skip_blanks();
    while (at_ < text_.size() && is_token_char(text_[at_])) into.push_back(text_[at_++]);
    return !into.empty();
  }

  // A token, or a quoted string whose content is one.
  bool value(std::string& into) {
    if (!skip('"')) return token(into);
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ == text_.size()) return false;
      if (!is_token_char(text_[at_])) return false;
      into.push_back(text_[at_++]);
    }
    if (at_ == text_.size()) return false;
    ++at_;
    return !into.empty();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

struct Terms {
  bool server_no_context_takeover = false;
  bool client_no_context_takeover = false;
  std::optional<int> server_bits;
  bool client_bits = false;
};

// 8 to 15, in decimal without a leading zero.
std::optional<int> window_bits(const std::string& text) {
  if (text == "8" || text == "9") return text[0] - '0';
  if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') return 10 + (text[1] - '0');
  return std::nullopt;
}

bool set_once(bool& flag) {
  return !std::exchange(flag, true);
}

// Nothing: a parameter is unknown, repeated or has a value that it can't have. `offer`:
// client_max_window_bits may stand there without a value.
std::optional<Terms> terms_of(const Extension& extension, bool offer) {
  Terms terms;
  for (const Parameter& parameter : extension.parameters) {
    bool good = false;
    if (parameter.name == "server_no_context_takeover") {
      good = !parameter.value && set_once(terms.server_no_context_takeover);
    } else if (parameter.name == "client_no_context_takeover") {
      good = !parameter.value && set_once(terms.client_no_context_takeover);
    } else if (parameter.name == "server_max_window_bits") {
      good = parameter.value && !terms.server_bits;
      if (good) terms.server_bits = window_bits(*parameter.value);
      good = good && terms.server_bits;
    } else if (parameter.name == "client_max_window_bits") {
      good = set_once(terms.client_bits) &&
             (parameter.value ? window_bits(*parameter.value).has_value() : offer);
    }
    if (!good) return std::nullopt;
  }
  return terms;
}

constexpr std::string_view kName = "permessage-deflate";
constexpr int kFullWindowBits = 15;

}  // namespace

Expected<std::optional<std::string>> accept_deflate(std::string_view offers) {
  if (offers.empty()) return std::optional<std::string>();
  const auto extensions = Parser(offers).list();
  if (!extensions) return tl::unexpected(extensions.error());
  for (const Extension& extension : *extensions) {
    if (extension.name != kName) continue;
    const auto terms = terms_of(extension, true);
    if (!terms || (terms->server_bits && *terms->server_bits < kFullWindowBits)) continue;
    std::string answer(kName);
    answer += "; server_no_context_takeover; client_no_context_takeover";
    // An offer with this parameter is accepted by repeating it (RFC 7692, 7.1.2.1).
    if (terms->server_bits) answer += "; server_max_window_bits=15";
    return std::optional(std::move(answer));
  }
  return std::optional<std::string>();
}

Expected<bool> deflate_agreed(std::string_view answer) {
  if (answer.empty()) return false;
  const auto extensions = Parser(answer).list();
  if (!extensions) return tl::unexpected(extensions.error());
  if (extensions->size() != 1 || extensions->front().name != kName) {
    return refuse("the server answered with an extension that was not offered");
  }
  const auto terms = terms_of(extensions->front(), false);
  if (!terms) return refuse("the server's parameters of permessage-deflate are malformed");
  if (!terms->server_no_context_takeover) {
    return refuse("the server did not agree to server_no_context_takeover");
  }
  if (terms->client_bits) return refuse("the server asks for a client window that was not offered");
  return true;
}

}  // namespace todoke::net
