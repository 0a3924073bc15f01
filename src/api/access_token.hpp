// Access tokens: JSON Web Tokens (RFC 7519) with HMAC-SHA-256, by OpenSSL. They say whose they are and until
// when they hold; nothing is stored of them. Only tokens with exactly the header that is written here are
// read, so that nobody chooses another algorithm.
//
// Whoever shares the secret takes each other's tokens.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace todoke::api {

class AccessTokens {
 public:
  // `issuer` stands as iss and aud: tokens of another node are refused although the secret be the same.
  AccessTokens(std::vector<std::uint8_t> secret, std::string issuer, std::chrono::seconds lifetime);

  // For `subject`, a text that needs no escapes in JSON.
  [[nodiscard]] std::string issue(std::string_view subject, SystemTime now) const;

  enum class Fault : std::uint8_t { malformed, forged, expired };
  struct Reading {
    std::string subject;  // empty where there is a fault
    std::optional<Fault> fault;
  };
  [[nodiscard]] Reading read(std::string_view token, SystemTime now) const;

  [[nodiscard]] std::chrono::seconds lifetime() const { return lifetime_; }

 private:
  [[nodiscard]] std::string signature_of(std::string_view signed_part) const;

  const std::vector<std::uint8_t> secret_;
  const std::string issuer_;
  const std::chrono::seconds lifetime_;
};

}  // namespace todoke::api
