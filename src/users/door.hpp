// The door of the User API: who calls, how often, and whether they may.
//
//   rate of the address ─▶ credential ─▶ rate of the key ─▶ account ─▶ consent ─▶ the route
//
// A credential is an access token (Authorization: Bearer) or the signature of this very request
// (Authorization: Nostr, NIP-98). The account and the consents are looked up on every request, in one
// statement: who is disabled stops at once.
//
// Cost of an open route: one bucket. Of the others: the HMAC of a token (about 2 us) or the check of a
// signature (about 50 us), and a round trip to the database.
#pragma once

#include <memory>

#include "api/route.hpp"
#include "base/config.hpp"
#include "base/metrics.hpp"
#include "net/rate_limit.hpp"
#include "users/desk.hpp"

namespace todoke::users {

namespace access {
// Routes point at one of these.
extern const api::Access kLogIn;    // for whoever wants to say who they are
extern const api::Access kOpen;     // for everybody
extern const api::Access kAccount;  // for an account that is active
extern const api::Access kMember;   // the same, with consent to what is current
extern const api::Access kOwner;    // for a key, also that of a deleted account
}  // namespace access

// The ways to say who one is, by their names in the document.
inline constexpr std::string_view kBearerScheme = "accessToken";
inline constexpr std::string_view kNostrScheme = "httpAuth";

// The answer for an account that the operator has disabled.
net::Response account_disabled();

class UserDoor final : public api::Door {
 public:
  UserDoor(DeskPtr desk, const Config& config, const Clock& clock, metrics::Registry& registry);

  Task<tl::expected<api::Caller, net::Response>> admit(const net::Request& request,
                                                       const api::Route& route) override;
  // From anywhere.
  void set_rates(const Config& config);

 private:
  using Key = tl::expected<std::string, net::Response>;

  [[nodiscard]] std::optional<net::Response> charge(net::RateLimiter& rate, std::string_view key,
                                                    std::string_view crowd);
  [[nodiscard]] Key key_of(const net::Request& request) const;
  [[nodiscard]] Key key_of_token(std::string_view token) const;
  [[nodiscard]] Key key_of_signature(const net::Request& request) const;
  Task<std::optional<net::Response>> judge(const api::Access& access, std::string pubkey) const;

  const DeskPtr desk_;
  net::RateLimiter log_in_;
  net::RateLimiter open_;
  net::RateLimiter protected_;
  net::RateLimiter protected_key_;
};

}  // namespace todoke::users
