#include "admin/login.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "admin/door.hpp"
#include "admin/passwords.hpp"
#include "admin/routes.hpp"
#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "base/timestamp.hpp"
#include "net/client_network.hpp"

namespace todoke::admin {
namespace {

// A person mistypes a few times; who guesses gets six tries a minute.
constexpr net::Rate kAddressRate{.per_second = 0.2, .burst = 20};
constexpr net::Rate kNameRate{.per_second = 0.1, .burst = 6};
constexpr std::size_t kThrottledMax = 10'000;
constexpr std::chrono::seconds kBusy(1);

metrics::Family<metrics::Counter>& logins(metrics::Registry& registry) {
  return registry.counters("todoke_admin_logins_total", "Tries to log in to the Admin API.", {"result"});
}

std::string cookie_line(std::string_view value, bool secure, std::chrono::seconds age) {
  return fmt::format("{}={}; Path=/admin-api; HttpOnly; SameSite=Strict; Max-Age={}{}", kCookieName, value,
                     age.count(), secure ? "; Secure" : "");
}

net::Response wrong_login() {
  return api::failure(api::status::kUnauthorized, "WRONG_LOGIN", "the name or the password is wrong");
}

std::string session_json(std::string_view name, AdminRole role, std::string_view csrf, SystemTime expires) {
  JsonWriter json;
  json.begin_object().member("username", name).member("role", to_string(role));
  json.member("csrf_token", csrf).member("expires_at", format_timestamp(expires, 0)).end_object();
  return std::move(json).text();
}

api::Schema session_schema() {
  return api::named(
      "Session",
      api::object_of({{"username", api::text_up_to(64, "Who is logged in.")},
                      {"role", api::choice_of({"viewer", "moderator", "operator"}, "What they may do.")},
                      {"csrf_token", api::text_up_to(64, "For X-CSRF-Token.")},
                      {"expires_at", api::formatted(api::kTimestamp, "When the session ends.")}}));
}

api::Schema login_schema() {
  return api::named("Login",
                    api::object_of({{"username", api::text_up_to(64, "Of an administrator.")},
                                    {"password", api::text_up_to(kPasswordBytesMax, "Their password.")}}));
}

api::Route session_route(std::string_view method, const RouteText& text, const api::Access& who,
                         api::Handler handler) {
  return {.method = method,
          .path = text.path,
          .name = text.name,
          .tag = "auth",
          .meaning = text.meaning,
          .access = &who,
          .answers = {{.status = 200, .meaning = "The session.", .body = session_schema()}},
          .failures = {{404, "NOT_FOUND", "The caller has a token and no session."}},
          .handler = std::move(handler)};
}

}  // namespace

Login::Login(Desk& desk)
    : desk_(desk),
      addresses_("admin_login", kAddressRate, true, desk.clock, desk.metrics, kThrottledMax),
      names_("admin_login_name", kNameRate, true, desk.clock, desk.metrics, kThrottledMax),
      succeeded_(logins(desk.metrics).with({"succeeded"})),
      refused_(logins(desk.metrics).with({"refused"})) {}

Task<net::Response> Login::log_in(const api::Call& call) {
  const auto name = call.body_text("username").value_or("");
  const auto network = net::network_of(call.request.client_ip, net::NetworkPrefixes());
  const auto by_address = addresses_.take(network);
  if (!by_address.allowed)
    co_return api::too_many(by_address.retry_after, "too many tries from this address");
  const auto by_name = names_.take(name + "\n" + network);
  if (!by_name.allowed) co_return api::too_many(by_name.retry_after, "too many tries for this name");
  if (hashing_ >= kHashesMax) co_return api::too_many(kBusy, "others are logging in just now");
  const auto deadline = answer_within();
  Credentials known;
  {
    const auto lease = co_await desk_.pool.acquire(deadline);
    known = co_await credentials_of(*lease, name, deadline);
  }
  ++hashing_;
  const auto checked =
      co_await attempt(is_password(call.body_text("password").value_or(""), known.password_hash));
  --hashing_;
  if (!checked) std::rethrow_exception(checked.error());
  if (!*checked) {
    refused_.add();
    log::warning("admin", "a login was refused", {{"network", call.caller.network}});
    co_return wrong_login();
  }
  succeeded_.add();
  co_return co_await begin(call, name, known.role);
}

Task<net::Response> Login::begin(const api::Call& call, std::string name, AdminRole role) {
  const auto deadline = answer_within();
  const auto times = session_times(desk_.live.config());
  const auto lease = co_await desk_.pool.acquire(deadline);
  const auto session = co_await begin_session(*lease, name, call.caller.network, cookie_of(call.request),
                                              times, desk_.clock.now(), deadline);
  auto response =
      api::answer(api::status::kOk, session_json(name, role, session.csrf_token, session.expires_at));
  response.headers.set("Set-Cookie",
                       cookie_line(session.cookie, call.request.secure || !desk_.is_loopback,
                                   std::chrono::duration_cast<std::chrono::seconds>(times.age_max)));
  co_return response;
}

Task<net::Response> Login::log_out(const api::Call& call) {
  const auto deadline = answer_within();
  const auto lease = co_await desk_.pool.acquire(deadline);
  co_await end_session(*lease, cookie_of(call.request), call.caller.name, call.caller.network, deadline);
  auto response = api::no_content();
  response.headers.set("Set-Cookie",
                       cookie_line("", call.request.secure || !desk_.is_loopback, std::chrono::seconds(0)));
  co_return response;
}

namespace {

Task<std::optional<Session>> session_of(Desk& desk, const api::Call& call) {
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  co_return co_await find_session(*lease, cookie_of(call.request), session_times(desk.live.config()),
                                  desk.clock.now(), deadline);
}

net::Response no_session() {
  return api::failure(api::status::kNotFound, "NOT_FOUND", "a token has no session");
}

}  // namespace

Task<net::Response> Login::renew(const api::Call& call) {
  const auto session = co_await session_of(desk_, call);
  if (!session) co_return no_session();
  co_return co_await begin(call, session->name, session->role);
}

Task<net::Response> Login::tell_session(const api::Call& call) {
  const auto session = co_await session_of(desk_, call);
  if (!session) co_return no_session();
  co_return api::answer(api::status::kOk,
                        session_json(session->name, session->role, session->csrf_token, session->expires_at));
}

Routes login_routes(Login& login) {
  Routes routes;
  auto begins =
      session_route("POST", {"/auth/login", "logIn", "", "Logs in: sets the cookie of the session."},
                    kAnybody, [&login](const api::Call& call) { return login.log_in(call); });
  begins.body = login_schema();
  begins.failures = {{401, "WRONG_LOGIN", "The name or the password is wrong."},
                     {422, "VALIDATION_ERROR", "A member is wrong; details.field names it."},
                     {429, "RATE_LIMITED", "Too many tries; see Retry-After."}};
  routes.push_back(std::move(begins));
  routes.push_back(session_route("GET", {"/auth/session", "getSession", "", "Who is logged in."}, kViewers,
                                 [&login](const api::Call& call) { return login.tell_session(call); }));
  routes.push_back(session_route(
      "POST", {"/auth/renew", "renewSession", "", "A new cookie and csrf_token for this session."}, kViewers,
      [&login](const api::Call& call) { return login.renew(call); }));
  auto ends = session_route("POST", {"/auth/logout", "logOut", "", "Ends the session."}, kViewers,
                            [&login](const api::Call& call) { return login.log_out(call); });
  ends.answers = {{.status = 204, .meaning = "It has ended."}};
  ends.failures = {};
  routes.push_back(std::move(ends));
  return routes;
}

}  // namespace todoke::admin
