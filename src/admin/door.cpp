#include "admin/door.hpp"

#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "admin/config.hpp"
#include "api/answers.hpp"
#include "base/text.hpp"
#include "net/client_network.hpp"

namespace todoke::admin {
namespace {

using Admitted = tl::expected<api::Caller, net::Response>;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kCsrfHeader = "X-CSRF-Token";

tl::unexpected<net::Response> turn_away(int status, std::string_view code, std::string_view message) {
  return tl::unexpected(api::failure(status, code, message));
}

tl::unexpected<net::Response> unknown_caller() {
  auto response = api::failure(api::status::kUnauthorized, "UNAUTHORIZED", "log in, or send a valid token");
  response.headers.set("WWW-Authenticate", "Bearer");
  return tl::unexpected(std::move(response));
}

AdminRole role_for(const api::Access* access) {
  if (access == &kViewers) return AdminRole::viewer;
  return access == &kModerators ? AdminRole::moderator : AdminRole::op;
}

bool is_change(const net::Request& request) {
  return request.method != "GET" && request.method != "HEAD";
}

// In a time that does not tell where they differ.
bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Admitted with_role(AdminRole role, const api::Route& route, std::string name, const net::Request& request) {
  const auto needed = role_for(route.access);
  if (role < needed) {
    return turn_away(api::status::kForbidden, "FORBIDDEN",
                     fmt::format("this needs the role {}; yours is {}", to_string(needed), to_string(role)));
  }
  return api::Caller{.name = std::move(name), .network = net::shown_network(request.client_ip)};
}

}  // namespace

std::string cookie_of(const net::Request& request) {
  const auto all = request.headers.joined("Cookie");
  std::string_view rest(all);
  while (!rest.empty()) {
    auto pair = trimmed(cut_until(rest, ';'));
    if (cut_until(pair, '=') == kCookieName) return std::string(pair);
  }
  return {};
}

SessionTimes session_times(const Config& config) {
  return {.idle_max = config.get(keys::kSessionIdle), .age_max = config.get(keys::kSessionMax)};
}

Task<Admitted> AdminDoor::admit(const net::Request& request, const api::Route& route) {
  if (!desk_.is_loopback && !request.secure) {
    co_return turn_away(api::status::kForbidden, "TLS_REQUIRED",
                        "server.internal_listen is not a loopback address: it needs server.internal_tls_cert "
                        "before anybody can log in");
  }
  if (route.access == &kAnybody)
    co_return api::Caller{.name = {}, .network = net::shown_network(request.client_ip)};
  const auto authorization = request.headers.get("Authorization");
  if (authorization.starts_with(kBearer))
    co_return co_await admit_token(request, route, std::string(authorization.substr(kBearer.size())));
  co_return co_await admit_session(request, route);
}

Task<Admitted> AdminDoor::admit_token(const net::Request& request, const api::Route& route,
                                      std::string token) {
  const auto deadline = answer_within();
  const auto lease = co_await desk_.pool.acquire(deadline);
  const auto holder = co_await find_token(*lease, std::move(token), desk_.clock.now(), deadline);
  if (!holder) co_return unknown_caller();
  co_return with_role(holder->role, route, "token:" + holder->name, request);
}

Task<Admitted> AdminDoor::admit_session(const net::Request& request, const api::Route& route) {
  auto cookie = cookie_of(request);
  if (cookie.empty()) co_return unknown_caller();
  const auto deadline = answer_within();
  const auto lease = co_await desk_.pool.acquire(deadline);
  const auto session = co_await find_session(*lease, std::move(cookie), session_times(desk_.live.config()),
                                             desk_.clock.now(), deadline);
  if (!session) co_return unknown_caller();
  if (is_change(request) && !is_same(request.headers.get(kCsrfHeader), session->csrf_token)) {
    co_return turn_away(api::status::kForbidden, "CSRF_TOKEN_REQUIRED",
                        "send the csrf_token of the login as X-CSRF-Token");
  }
  co_return with_role(session->role, route, "admin:" + session->name, request);
}

}  // namespace todoke::admin
