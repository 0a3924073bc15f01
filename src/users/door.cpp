#include "users/door.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "net/config.hpp"
#include "nostr/event_id.hpp"
#include "nostr/http_auth.hpp"
#include "nostr/signature.hpp"
#include "users/accounts_sql.hpp"
#include "users/config.hpp"

namespace todoke::users {
namespace {

using api::Failure;
namespace status = api::status;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kChallenges = R"(Bearer realm="todoke", Nostr)";
constexpr double kSecondsInMinute = 60;

const Failure kRateLimited{429, "RATE_LIMITED",
                           "Too many requests of this address or key; Retry-After says how long to wait."};

std::vector<Failure> key_failures() {
  return {kRateLimited,
          {401, "AUTH_REQUIRED", "The request says nothing of who sends it."},
          {401, "INVALID_TOKEN", "The access token is malformed, forged or expired."},
          {401, "AUTH_FAILED", "The signature of the request (NIP-98) is none, or is for something else."},
          {403, "ACCOUNT_DISABLED", "The operator has disabled the account."}};
}

std::vector<Failure> with(std::vector<Failure> failures, Failure more) {
  failures.push_back(more);
  return failures;
}

std::vector<std::string_view> both_schemes() {
  return {kBearerScheme, kNostrScheme};
}

const Failure kDeleted{410, "ACCOUNT_DELETED", "The account and everything about it was deleted."};

net::Rate per_minute(std::int64_t count) {
  return {static_cast<double>(count) / kSecondsInMinute, static_cast<double>(count)};
}

bool is_on(const Config& config) {
  return config.get(net::keys::kRates) == "on";
}

net::Response unauthorized(std::string_view code, std::string_view message) {
  auto response = api::failure(status::kUnauthorized, code, message);
  response.headers.set("WWW-Authenticate", kChallenges);
  return response;
}

// "terms 1.0" and so on.
net::Response consent_required(const std::vector<std::string>& missing) {
  JsonWriter details;
  details.begin_object().key("required").begin_array();
  for (const auto& policy : missing) {
    std::string_view version = policy;
    const auto type = cut_until(version, ' ');
    details.begin_object().member("type", type).member("version", version).end_object();
  }
  details.end_array().end_object();
  return api::failure(status::kPreconditionRequired, "CONSENT_REQUIRED",
                      "agree to the current policies first (POST consents)", details.text());
}

std::string_view message_of(api::AccessTokens::Fault fault) {
  switch (fault) {
    case api::AccessTokens::Fault::malformed:
      return "the access token is malformed";
    case api::AccessTokens::Fault::forged:
      return "the access token is not of this node";
    case api::AccessTokens::Fault::expired:
      break;
  }
  return "the access token has expired";
}

}  // namespace

namespace access {
const api::Access kLogIn{{}, {kRateLimited}};
const api::Access kOpen{{}, {kRateLimited}};
const api::Access kOwner{both_schemes(), key_failures()};
const api::Access kAccount{both_schemes(), with(key_failures(), kDeleted)};
const api::Access kMember{
    both_schemes(),
    with(with(key_failures(), kDeleted),
         {428, "CONSENT_REQUIRED", "details.required names the policies that the account has to agree to."})};
}  // namespace access

UserDoor::UserDoor(DeskPtr desk, const Config& config, const Clock& clock, metrics::Registry& registry)
    : desk_(std::move(desk)),
      log_in_("users_auth", per_minute(config.get(keys::kAuthPerMinute)), is_on(config), clock, registry),
      open_("users_public", per_minute(config.get(keys::kPublicPerMinute)), is_on(config), clock, registry),
      protected_("users_protected", per_minute(config.get(keys::kProtectedPerMinute)), is_on(config), clock,
                 registry),
      protected_key_("users_protected_key", per_minute(config.get(keys::kProtectedPerMinute)), is_on(config),
                     clock, registry) {}

void UserDoor::set_rates(const Config& config) {
  const bool on = is_on(config);
  log_in_.set(per_minute(config.get(keys::kAuthPerMinute)), on);
  open_.set(per_minute(config.get(keys::kPublicPerMinute)), on);
  protected_.set(per_minute(config.get(keys::kProtectedPerMinute)), on);
  protected_key_.set(per_minute(config.get(keys::kProtectedPerMinute)), on);
}

Task<tl::expected<api::Caller, net::Response>> UserDoor::admit(const net::Request& request,
                                                               const api::Route& route) {
  const auto& access = *route.access;
  const auto network = net::network_of(request.client_ip, desk_->settings()->prefixes);
  const auto neighbourhood = net::neighbourhood_of(request.client_ip);
  const bool is_protected = !access.schemes.empty();
  auto& rate = is_protected ? protected_ : (&access == &access::kLogIn ? log_in_ : open_);
  if (auto refused = charge(rate, network, neighbourhood)) co_return tl::unexpected(std::move(*refused));
  if (!is_protected) co_return api::Caller{{}, network};
  auto key = key_of(request);
  if (!key) co_return tl::unexpected(std::move(key.error()));
  if (auto refused = charge(protected_key_, *key, *key)) co_return tl::unexpected(std::move(*refused));
  auto refused = co_await judge(access, *key);
  if (refused) co_return tl::unexpected(std::move(*refused));
  co_return api::Caller{std::move(*key), network};
}

std::optional<net::Response> UserDoor::charge(net::RateLimiter& rate, std::string_view key,
                                              std::string_view crowd) {
  const std::array<net::RateLimiter::Charge, 1> charges{net::RateLimiter::Charge{key, crowd}};
  const auto verdict = rate.take(charges);
  if (verdict.allowed) return std::nullopt;
  return api::too_many(verdict.retry_after, "too many requests");
}

UserDoor::Key UserDoor::key_of(const net::Request& request) const {
  const auto authorization = request.headers.get("Authorization");
  if (authorization.empty())
    return tl::unexpected(
        unauthorized("AUTH_REQUIRED", "send an access token, or sign the request as NIP-98 says"));
  if (nostr::is_http_auth(authorization)) return key_of_signature(request);
  if (authorization.size() > kBearer.size() &&
      same_ignoring_case(authorization.substr(0, kBearer.size()), kBearer))
    return key_of_token(trimmed(authorization.substr(kBearer.size())));
  return tl::unexpected(unauthorized("AUTH_REQUIRED", "Authorization is neither Bearer nor Nostr"));
}

UserDoor::Key UserDoor::key_of_token(std::string_view token) const {
  const auto tokens = desk_->tokens();
  if (!tokens) return tl::unexpected(api::unavailable("the node is starting"));
  auto reading = tokens->read(token, desk_->now());
  if (reading.fault) return tl::unexpected(unauthorized("INVALID_TOKEN", message_of(*reading.fault)));
  return std::move(reading.subject);
}

UserDoor::Key UserDoor::key_of_signature(const net::Request& request) const {
  const auto event = nostr::read_http_auth(request.headers.get("Authorization"),
                                           {request.method, request.body, request.target},
                                           desk_->target_of(request), seconds_of(desk_->now()));
  if (!event) return tl::unexpected(unauthorized("AUTH_FAILED", event.error().message));
  if (!nostr::has_right_id(*event) || !nostr::has_right_signature(*event))
    return tl::unexpected(unauthorized("AUTH_FAILED", "bad signature"));
  return event->pubkey().hex();
}

Task<std::optional<net::Response>> UserDoor::judge(const api::Access& access, std::string pubkey) const {
  const auto rows = co_await desk_->ask(sql::kStandingOf, {pubkey});
  const auto row = rows.one();
  const auto account = row.get<std::string>("status");
  if (account == "disabled") co_return account_disabled();
  if (account == "deleted" && &access != &access::kOwner)
    co_return api::failure(status::kGone, kDeleted.code, "the account was deleted");
  if (&access != &access::kMember) co_return std::nullopt;
  const auto missing = row.get<std::vector<std::string>>("missing");
  if (missing.empty()) co_return std::nullopt;
  co_return consent_required(missing);
}

net::Response account_disabled() {
  return api::failure(status::kForbidden, "ACCOUNT_DISABLED", "the account is disabled");
}

}  // namespace todoke::users
