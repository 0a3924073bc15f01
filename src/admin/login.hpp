// Logging in with a password.
//
// Throttled by address, and by name together with the address: whoever guesses passwords of an operator from
// elsewhere does not keep the operator out. Tokens and `todoke admin` are never throttled, so that a flood
// from the operator's own network does not either. At most kHashesMax passwords are looked at a time.
#pragma once

#include "admin/desk.hpp"
#include "net/rate_limit.hpp"

namespace todoke::admin {

class Login {
 public:
  // 64 MiB and a thread of the blocking pool each.
  static constexpr std::size_t kHashesMax = 2;

  explicit Login(Desk& desk);

  Task<net::Response> log_in(const api::Call& call);
  Task<net::Response> log_out(const api::Call& call);
  // A new cookie and a new csrf_token for the session that calls; the old ones end.
  Task<net::Response> renew(const api::Call& call);
  Task<net::Response> tell_session(const api::Call& call);

 private:
  Task<net::Response> begin(const api::Call& call, std::string name, AdminRole role);

  Desk& desk_;
  net::RateLimiter addresses_;
  net::RateLimiter names_;
  metrics::Counter& succeeded_;
  metrics::Counter& refused_;
  std::size_t hashing_ = 0;
};

}  // namespace todoke::admin
