// Who may pass to the Admin API: a session (the cookie of a login, with X-CSRF-Token for changes) or a bearer
// token, with a role that the route asks for. Nobody passes over a listener that others can reach in plain.
//
// Cost: one statement for a request.
#pragma once

#include <string>

#include "admin/desk.hpp"

namespace todoke::admin {

inline constexpr std::string_view kCookieName = "todoke_session";

// Of the session; empty: there is none.
std::string cookie_of(const net::Request& request);

SessionTimes session_times(const Config& config);

class AdminDoor final : public api::Door {
 public:
  explicit AdminDoor(Desk& desk) : desk_(desk) {}

  Task<tl::expected<api::Caller, net::Response>> admit(const net::Request& request,
                                                       const api::Route& route) override;

 private:
  Task<tl::expected<api::Caller, net::Response>> admit_session(const net::Request& request,
                                                               const api::Route& route);
  Task<tl::expected<api::Caller, net::Response>> admit_token(const net::Request& request,
                                                             const api::Route& route, std::string token);

  Desk& desk_;
};

}  // namespace todoke::admin
