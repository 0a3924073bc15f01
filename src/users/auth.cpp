// Logging in: a challenge, signed as NIP-42 says, gives an access token.
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "nostr/event_id.hpp"
#include "nostr/signature.hpp"
#include "users/accounts_sql.hpp"
#include "users/door.hpp"
#include "users/event_json.hpp"
#include "users/routes.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

constexpr std::chrono::seconds kChallengeLifetime(300);
// Of one key at a time. Somebody who logs in needs one.
constexpr std::int64_t kChallengesMax = 100;
constexpr std::string_view kEventMember = "auth_event_json";

net::Response auth_failed(std::string_view why) {
  return api::failure(status::kUnauthorized, "AUTH_FAILED", why);
}

Task<net::Response> give_challenge(const Desk& desk, const api::Call& call) {
  const auto challenge = nostr::make_challenge();
  const auto pubkey = call.body_text("pubkey").value();
  pg::Params params(challenge, pubkey, static_cast<double>(kChallengeLifetime.count()), kChallengesMax);
  const auto rows = co_await desk.ask(sql::kAddChallenge, std::move(params));
  JsonWriter json;
  json.begin_object()
      .member("challenge", challenge)
      .member("expires_at", format_timestamp(rows.one().get<SystemTime>(0), 0))
      .end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

// The challenge that the event answers; refused: what the caller is told.
tl::expected<std::string, net::Response> answered_challenge(const Desk& desk, const api::Call& call,
                                                            const nostr::Event& event) {
  std::string challenge(event.first_value("challenge").value_or(""));
  if (const auto broken =
          nostr::broken_auth(event, challenge, desk.target_of(call.request), seconds_of(desk.now())))
    return tl::unexpected(auth_failed(text_of(*broken)));
  if (!nostr::has_right_id(event) || !nostr::has_right_signature(event))
    return tl::unexpected(auth_failed("bad signature"));
  return challenge;
}

net::Response give_token(const Desk& desk, const std::string& pubkey) {
  const auto tokens = desk.tokens();
  if (!tokens) return api::unavailable("the node is starting");
  JsonWriter json;
  json.begin_object()
      .member("access_token", tokens->issue(pubkey, desk.now()))
      .member("token_type", "Bearer")
      .member("expires_in", tokens->lifetime().count())
      .member("pubkey", pubkey)
      .end_object();
  return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> verify(const Desk& desk, const api::Call& call) {
  const auto event = event_in(desk, call, kEventMember);
  if (!event) co_return api::invalid(event.error());
  const auto challenge = answered_challenge(desk, call, *event);
  if (!challenge) co_return challenge.error();
  const auto pubkey = event->pubkey().hex();
  const auto rows = co_await desk.ask(sql::kUseChallenge, {*challenge, pubkey});
  if (rows.empty() || !rows.one().get<bool>("is_fresh"))
    co_return auth_failed("the challenge is unknown, used or expired");
  if (rows.one().get<std::string>("status") == "disabled") co_return account_disabled();
  co_return give_token(desk, pubkey);
}

api::Schema token_schema() {
  return api::named(
      "AccessToken",
      api::object_of({{"access_token", api::text_up_to(4'096, "Goes into Authorization: Bearer.")},
                      {"token_type", api::choice_of({"Bearer"}, "Its scheme.")},
                      {"expires_in", api::integer_from(1, 86'400, "Seconds that it holds.")},
                      {"pubkey", api::formatted(api::kHexKey, "Whose it is.")}}));
}

api::Schema challenge_schema() {
  return api::named("Challenge",
                    api::object_of({{"challenge", api::text_up_to(128, "To be signed.")},
                                    {"expires_at", api::formatted(api::kTimestamp, "Until when.")}}));
}

}  // namespace

void add_auth_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(
      {.method = "POST",
       .path = "/auth/challenge",
       .name = "getChallenge",
       .tag = "auth",
       .meaning = "Gives a challenge that holds for 300 seconds and for one login.",
       .access = &access::kLogIn,
       .body = api::object_of({{"pubkey", api::formatted(api::kHexKey, "Who wants to log in.")}}),
       .answers = {{.meaning = "The challenge.", .body = challenge_schema()}},
       .handler = at(desk, give_challenge)});
  routes.push_back(
      {.method = "POST",
       .path = "/auth/verify",
       .name = "logIn",
       .tag = "auth",
       .meaning = "Takes the signed challenge, an event of kind 22242 (NIP-42) with the tags relay and "
                  "challenge, and gives an access token. `relay` is the URL of this node, of which the host "
                  "counts.",
       .access = &access::kLogIn,
       .body = api::object_of({{kEventMember, event_schema("The event, as an object or as JSON text.")}}),
       .answers = {{.meaning = "The access token.", .body = token_schema()}},
       .failures = {{401, "AUTH_FAILED",
                     "The event is not signed right, not for this node, too old, or answers no challenge."},
                    {403, "ACCOUNT_DISABLED", "The operator has disabled the account."}},
       .handler = at(desk, verify),
       .body_bytes_max = kEventBodyMax});
}

}  // namespace todoke::users
