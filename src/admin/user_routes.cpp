// Accounts, plans, usage, policies, and what people asked to have exported or deleted.
#include <utility>

#include "admin/changes_sql.hpp"
#include "admin/lists_sql.hpp"
#include "admin/routes.hpp"

namespace todoke::admin {
namespace {

using api::Needed;
constexpr std::int64_t kUnitsMax = 1'000'000'000;
const api::Format kPlanId{"^[a-z0-9][a-z0-9_-]{0,63}$",
                          [](std::string_view text) {
                            const auto is_first = [](char c) {
                              return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                            };
                            if (text.empty() || text.size() > 64 || !is_first(text.front())) return false;
                            for (const char c : text) {
                              if (!is_first(c) && c != '_' && c != '-') return false;
                            }
                            return true;
                          },
                          "up to 64 of a-z, 0-9, _ and -"};
const api::Format kVersionOfPolicy{
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    [](std::string_view text) { return is_admin_name(text) && text.find('@') == std::string_view::npos; },
    "up to 64 of A-Z, a-z, 0-9, ., _ and -"};

api::Parameter pubkey() {
  return api::in_path("pubkey", api::formatted(api::kHexKey, "The key of the account."));
}

api::Schema note_schema() {
  return api::named("AccountNote", api::object_of({{"note",
                                                    api::nullable(api::text_up_to(250,
                                                                                  "Why, for other "
                                                                                  "operators.")),
                                                    Needed::optional}}));
}

DeskHandler status_change(std::string_view status) {
  return [status](Desk& desk, const api::Call& call) -> Task<net::Response> {
    pg::Params params(call.text("pubkey"), status, call.body_text("note"));
    pg::Batch::Item first{sql::kKnowAccount, {call.text("pubkey")}};
    co_return co_await answer_change(desk, call, sql::kSetAccountStatus, std::move(params), std::move(first));
  };
}

Task<net::Response> set_plan(Desk& desk, const api::Call& call) {
  pg::Params params(call.text("pubkey"), call.body_text("plan_id"));
  co_return co_await answer_change(desk, call, sql::kSetAccountPlan, std::move(params));
}

Task<net::Response> put_plan(Desk& desk, const api::Call& call) {
  const bool is_default = body_flag(call, "is_default");
  const auto plan = call.text("plan_id");
  pg::Params params(plan, call.body_text("name"), is_default, body_json(call, "limits"));
  pg::Params none(plan, is_default);
  pg::Batch::Item first{sql::kDropDefaultPlan, std::move(none)};
  co_return co_await answer_change(desk, call, sql::kPutPlan, std::move(params), std::move(first));
}

api::Schema plan_schema() {
  std::vector<api::SchemaMember> limits;
  for (const std::string_view metric : {"index.search_requests", "index.trending_requests", "trust.requests",
                                        "moderation.report_submits", "max_topics"}) {
    limits.push_back(
        {metric, api::integer_from(0, kUnitsMax, "A day; of max_topics: at once."), Needed::optional});
  }
  return api::named(
      "Plan",
      api::object_of({{"name", some_text(50, "For people.")},
                      {"is_default", api::boolean("Of accounts without a plan."), Needed::optional},
                      {"limits", api::object_of(std::move(limits), "What has none is not limited.")}}));
}

Task<net::Response> list_users(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("status"), is_oldest_first(call));
  co_return co_await answer_page(desk, call, sql::kListUsers, std::move(params), 2);
}

Task<net::Response> list_usage(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("day"), call.text_if("pubkey"));
  co_return co_await answer_page(desk, call, sql::kListUsage, std::move(params), 2);
}

Task<net::Response> list_personal(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("status"), call.text_if("kind"));
  co_return co_await answer_page(desk, call, sql::kListPersonalDataRequests, std::move(params), 2);
}

const api::Format kDay{"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                       [](std::string_view text) {
                         return text.size() == 10 &&
                                api::kTimestamp.matches(std::string(text) + "T00:00:00Z");
                       },
                       "a day such as 2026-01-31"};

}  // namespace

Routes user_routes(Desk& desk) {
  const std::string_view tag = "users";
  return {
      read_route(desk, {"/users", "listUsers", tag, "Accounts of the User API."},
                 with_page({api::in_query("status",
                                          api::choice_of({"active", "disabled", "deleted"}, "Only those."))},
                           true),
                 list_users),
      read_route(desk, {"/users/{pubkey}", "getUser", tag, "One account, its subscriptions and consents."},
                 {pubkey()},
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_item(at, sql::kShowUser, {call.text("pubkey")});
                 }),
      change_route(desk, "POST",
                   {"/users/{pubkey}/disable", "disableUser", tag,
                    "Keeps the key out, at once; also one that the node does not know yet."},
                   kModerators, {pubkey()}, note_schema(), status_change("disabled")),
      change_route(desk, "POST", {"/users/{pubkey}/enable", "enableUser", tag, "Lets the key in again."},
                   kModerators, {pubkey()}, note_schema(), status_change("active")),
      change_route(
          desk, "PUT",
          {"/users/{pubkey}/plan", "setUserPlan", tag,
           "Gives the account a plan; null: the "
           "default one."},
          kOperators, {pubkey()},
          api::named("AccountPlan",
                     api::object_of({{"plan_id", api::nullable(api::formatted(kPlanId, "The plan."))}})),
          set_plan),
      read_route(desk, {"/plans", "listPlans", "plans", "What people may use."}, with_page({}),
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_page(at, call, sql::kListPlans, {}, 1);
                 }),
      change_route(desk, "PUT", {"/plans/{plan_id}", "putPlan", "plans", "Makes a plan, or replaces it."},
                   kOperators, {api::in_path("plan_id", api::formatted(kPlanId, "Its id."))}, plan_schema(),
                   put_plan),
      read_route(desk,
                 {"/usage", "listUsage", "plans", "What keys have used on a day (UTC; today without it)."},
                 with_page({api::in_query("day", api::formatted(kDay, "The day.")),
                            api::in_query("pubkey", api::formatted(api::kHexKey, "Only of this key."))}),
                 list_usage),
      read_route(desk,
                 {"/personal-data-requests", "listPersonalDataRequests", "users",
                  "Who asked for a copy or the deletion of their data; keys as hashes."},
                 with_page({api::in_query("status", api::choice_of({"pending", "running", "succeeded",
                                                                    "failed", "cancelled", "expired"},
                                                                   "Only those.")),
                            api::in_query("kind", api::choice_of({"export", "deletion"}, "Only those."))}),
                 list_personal)};
}

namespace {

const api::Format kLocale{"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
                          [](std::string_view text) {
                            std::size_t part = 0;
                            bool is_first = true;
                            for (const char c : text) {
                              if (c == '-') {
                                if (part < 2) return false;
                                part = 0;
                                is_first = false;
                                continue;
                              }
                              const bool is_small = c >= 'a' && c <= 'z';
                              const bool is_other = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                              if (!is_small && (is_first || !is_other)) return false;
                              if (++part > (is_first ? 3U : 8U)) return false;
                            }
                            return part >= 2;
                          },
                          "a language such as en or pt-BR"};

std::vector<api::Parameter> policy_place(bool with_locale) {
  std::vector<api::Parameter> place{
      api::in_path("type", api::choice_of({"terms", "privacy"}, "What it is.")),
      api::in_path("version", api::formatted(kVersionOfPolicy, "Of the policy."))};
  if (with_locale) place.push_back(api::in_query("locale", api::formatted(kLocale, "en without it.")));
  return place;
}

pg::Params place_of(const api::Call& call) {
  return {call.text("type"), call.text("version"), call.text_if("locale").value_or("en")};
}

DeskHandler policy_change(pg::Statement statement) {
  return [statement](Desk& desk, const api::Call& call) -> Task<net::Response> {
    return answer_change(desk, call, statement, place_of(call));
  };
}

Task<net::Response> draft(Desk& desk, const api::Call& call) {
  auto params = place_of(call);
  params.add(call.body_text("title")).add(call.body_text("content"));
  co_return co_await answer_change(desk, call, sql::kDraftPolicy, std::move(params));
}

Task<net::Response> make_current(Desk& desk, const api::Call& call) {
  pg::Params params(call.text("type"), call.text("version"));
  co_return co_await answer_change(desk, call, sql::kMakePolicyCurrent, std::move(params));
}

constexpr std::size_t kPolicyBodyMax = 2 * 1'024 * 1'024;

}  // namespace

Routes policy_routes(Desk& desk) {
  const std::string_view tag = "policies";
  auto drafts = change_route(
      desk, "PUT",
      {"/policies/{type}/{version}", "draftPolicy", tag,
       "Writes a draft; a published text never "
       "changes (409 POLICY_PUBLISHED)."},
      kOperators, policy_place(true),
      api::named("PolicyDraft", api::object_of({{"title", some_text(100, "Its title.")},
                                                {"content", some_text(65'536, "Its text, Markdown.")}})),
      draft);
  drafts.body_bytes_max = kPolicyBodyMax;
  return {
      read_route(desk,
                 {"/policies", "listPolicies", tag, "Terms and privacy statements, without their texts."},
                 with_page({api::in_query("type", api::choice_of({"terms", "privacy"}, "Only those."))}),
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_page(at, call, sql::kListPolicies, {call.text_if("type")}, 3);
                 }),
      read_route(desk, {"/policies/{type}/{version}", "getPolicy", tag, "One, with its text."},
                 policy_place(true),
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_item(at, sql::kShowPolicy, place_of(call));
                 }),
      std::move(drafts),
      change_route(desk, "DELETE",
                   {"/policies/{type}/{version}", "dropPolicyDraft", tag, "Throws a draft away."}, kOperators,
                   policy_place(true), std::nullopt, policy_change(sql::kDropDraft)),
      change_route(desk, "POST",
                   {"/policies/{type}/{version}/publish", "publishPolicy", tag,
                    "From now on its text "
                    "stays as it is."},
                   kOperators, policy_place(true), std::nullopt, policy_change(sql::kPublishPolicy)),
      change_route(desk, "POST",
                   {"/policies/{type}/{version}/make-current", "makePolicyCurrent", tag,
                    "Asks everybody to agree to this version."},
                   kOperators, policy_place(false), std::nullopt, make_current),
      change_route(desk, "DELETE",
                   {"/policies/{type}/current", "dropCurrentPolicy", tag,
                    "Nobody has to agree to a "
                    "policy of this type any more."},
                   kOperators, {api::in_path("type", api::choice_of({"terms", "privacy"}, "What it is."))},
                   std::nullopt, [](Desk& at, const api::Call& call) -> Task<net::Response> {
                     return answer_change(at, call, sql::kDropCurrentPolicy, {call.text("type")});
                   })};
}

}  // namespace todoke::admin
