#include "orders/intake/clients.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"

namespace todoke::orders {
namespace {

constexpr std::size_t kFileBytesMax = 1024 * 1024;
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kNameDigits = 8;  // of a token without a name
constexpr std::size_t kTokenBytesMin = 16;
constexpr std::string_view kScheme = "bearer ";

std::string hash_of(std::string_view token) {
  return to_hex(sha256({token}));
}

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_scheme(std::string_view text) {
  return std::equal(text.begin(), text.end(), kScheme.begin(), kScheme.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

Expected<Tokens> Tokens::parse(std::string_view text) {
  Tokens tokens;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    std::string second;
    std::string more;
    words >> first >> second >> more;
    if (first.empty()) continue;
    if (!more.empty()) return refuse(fmt::format("line {}: more than a name and a hash", number));
    if (!second.empty() && !is_hash(second)) {
      return refuse(fmt::format("line {}: the hash of a token is 64 lower-case hex digits", number));
    }
    // Taken as a token it would let in everybody who has read the hash, and not the token's owner.
    if (second.empty() && is_hex(first) && first.size() == kHashDigits) {
      return refuse(fmt::format("line {}: a hash without the name of its client", number));
    }
    if (second.empty() && first.size() < kTokenBytesMin) {
      return refuse(fmt::format("line {}: a token has at least {} characters", number, kTokenBytesMin));
    }
    const auto hash = second.empty() ? hash_of(first) : second;
    const auto name = second.empty() ? fmt::format("token-{}", hash.substr(0, kNameDigits)) : first;
    if (!tokens.names_.emplace(hash, name).second)
      return refuse(fmt::format("line {}: a token twice", number));
  }
  return tokens;
}

std::optional<std::string> Tokens::name_of(std::string_view token) const {
  const auto found = names_.find(hash_of(token));
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

Expected<void> Clients::load() {
  if (path_.empty()) return {};
  std::ifstream file(path_, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) return refuse(fmt::format("orders.tokens_file {} can't be read", path_));
  if (text.size() > kFileBytesMax) return refuse(fmt::format("orders.tokens_file {} is too large", path_));
  auto tokens = Tokens::parse(text);
  if (!tokens) return refuse(fmt::format("orders.tokens_file {}: {}", path_, tokens.error().message));
  if (tokens->size() == 0) {
    log::warning("orders", "the tokens file has no token: nobody may post", {{"file", path_}});
  }
  const std::lock_guard lock(mutex_);
  tokens_ = std::make_shared<const Tokens>(std::move(*tokens));
  return {};
}

std::optional<std::string> Clients::who(std::string_view authorization, const std::string& address) const {
  if (path_.empty()) return address;
  std::shared_ptr<const Tokens> tokens;
  {
    const std::lock_guard lock(mutex_);
    tokens = tokens_;
  }
  if (!tokens || !is_scheme(authorization.substr(0, kScheme.size()))) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  return tokens->name_of(authorization);
}

}  // namespace todoke::orders
