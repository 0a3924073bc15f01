#include "api/access_token.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"

namespace todoke::api {
namespace {

constexpr std::string_view kHeader = R"({"alg":"HS256","typ":"JWT"})";
constexpr std::size_t kTokenBytesMax = 2'048;
constexpr std::size_t kIdBytes = 16;

std::string encoded(std::string_view text) {
  return to_base64(as_bytes(text), Base64::url);
}

std::int64_t unix_seconds(SystemTime time) {
  return seconds_of(time).time_since_epoch().count();
}

std::optional<std::int64_t> claimed_seconds(const JsonValue& claims, std::string_view name) {
  const auto* value = claims.member(name);
  if (value == nullptr || !value->is(JsonValue::Kind::number)) return std::nullopt;
  return parse_number<std::int64_t>(value->text);
}

std::string claimed_text(const JsonValue& claims, std::string_view name) {
  const auto* value = claims.member(name);
  return value != nullptr && value->is(JsonValue::Kind::string) ? value->text : std::string();
}

bool is_same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

AccessTokens::AccessTokens(std::vector<std::uint8_t> secret, std::string issuer,
                           std::chrono::seconds lifetime)
    : secret_(std::move(secret)), issuer_(std::move(issuer)), lifetime_(lifetime) {}

std::string AccessTokens::signature_of(std::string_view signed_part) const {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  const auto text = as_bytes(signed_part);
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), text.data(), text.size(),
           digest.data(), &size) == nullptr) {
    throw std::runtime_error("HMAC-SHA-256 is not available");
  }
  return to_base64(std::span(digest).first(size), Base64::url);
}

std::string AccessTokens::issue(std::string_view subject, SystemTime now) const {
  JsonWriter claims;
  claims.begin_object()
      .member("sub", subject)
      .member("iat", unix_seconds(now))
      .member("exp", unix_seconds(now + lifetime_))
      .member("jti", random_hex(kIdBytes))
      .member("iss", issuer_)
      .member("aud", issuer_)
      .end_object();
  auto token = encoded(kHeader) + "." + encoded(claims.text());
  token += "." + signature_of(token);
  return token;
}

AccessTokens::Reading AccessTokens::read(std::string_view token, SystemTime now) const {
  if (token.size() > kTokenBytesMax) return {{}, Fault::malformed};
  const auto end = token.rfind('.');
  if (end == std::string_view::npos) return {{}, Fault::malformed};
  const auto signed_part = token.substr(0, end);
  auto claims_part = signed_part;
  if (cut_until(claims_part, '.') != encoded(kHeader)) return {{}, Fault::malformed};
  if (!is_same_text(signature_of(signed_part), token.substr(end + 1))) return {{}, Fault::forged};
  const auto text = from_base64(claims_part, Base64::url);
  const auto claims = read_json(text.value_or(""));
  if (!claims) return {{}, Fault::malformed};
  const auto expires = claimed_seconds(*claims, "exp");
  if (!expires || *expires <= unix_seconds(now)) return {{}, Fault::expired};
  if (claimed_text(*claims, "iss") != issuer_ || claimed_text(*claims, "aud") != issuer_)
    return {{}, Fault::forged};
  auto subject = claimed_text(*claims, "sub");
  if (subject.empty()) return {{}, Fault::malformed};
  return {std::move(subject), std::nullopt};
}

}  // namespace todoke::api
