// What was done (audit), how it went (series of metrics), and what retention would drop.
#include <utility>

#include <fmt/format.h>

#include "admin/lists_sql.hpp"
#include "admin/routes.hpp"
#include "admin/trail.hpp"
#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "relay/retention.hpp"

namespace todoke::admin {
namespace {

constexpr std::int64_t kMinutesMax = 1'500;
constexpr std::int32_t kMinutesDefault = 1'440;
// They read whole tables; the listener gives a handler no longer.
constexpr std::chrono::seconds kWholeTablesMax(25);

Task<net::Response> list_audit(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("actor"), call.text_if("action"), call.text_if("subject"));
  co_return co_await answer_page(desk, call, sql::kListAudit, std::move(params), 1);
}

Task<net::Response> show_series(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("series"),
                    static_cast<std::int32_t>(call.integer_or("minutes", kMinutesDefault)));
  co_return co_await answer_item(desk, sql::kShowSeries, std::move(params));
}

Task<net::Response> check_whole_trail(Desk& desk, const api::Call& /*call*/) {
  const auto deadline = Deadline::after(kWholeTablesMax);
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto check = co_await check_trail(*lease, deadline);
  JsonWriter json;
  json.begin_object().member("links", check.links).member("head", check.head);
  json.member("is_whole", check.broken.empty()).key("broken").begin_array();
  for (const auto& link : check.broken) {
    json.begin_object().member("number", link.number).member("source", link.source);
    json.member("row_key", link.row_key).member("problem", link.problem).end_object();
  }
  json.end_array().end_object();
  co_return api::answer(api::status::kOk, std::move(json).text());
}

std::string retention_json(const std::vector<relay::PlanLine>& lines, const relay::RetentionPeriods& periods,
                           SystemTime at) {
  JsonWriter json;
  json.begin_object().member("at", format_timestamp(at, 0)).key("periods").begin_object();
  json.member("regular_days", periods.regular).member("superseded_days", periods.superseded);
  json.member("deletion_days", periods.deletion).member("tombstone_days", periods.tombstone);
  json.member("dedupe_days", periods.dedupe).end_object().key("drops").begin_array();
  for (const auto& line : lines) {
    json.begin_object().member("what", line.what).member("where", line.where).member("rows", line.rows);
    json.member("bytes", line.bytes).member("moved", line.moved).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

Task<net::Response> plan_retention(Desk& desk, const api::Call& call) {
  const auto asked = call.text_if("at");
  const auto at = asked ? parse_timestamp(*asked) : std::optional(desk.clock.now());
  if (!at) co_return api::invalid({"at", "must be a time that there is"});
  const auto periods = relay::retention_periods_from(desk.live.config());
  const auto deadline = Deadline::after(kWholeTablesMax);
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto lines = co_await relay::plan_retention(*lease, periods, *at, deadline);
  co_return api::answer(api::status::kOk, retention_json(lines, periods, *at));
}

}  // namespace

Routes record_routes(Desk& desk) {
  return {
      read_route(desk,
                 {"/audit", "listAudit", "audit",
                  "Everything that was audited, the newest first: what operators "
                  "did, orders, and the configuration."},
                 with_page({api::in_query("actor", api::text_up_to(200, "Who did it, whole.")),
                            api::in_query("action", api::text_up_to(200, "How the action begins.")),
                            api::in_query("subject", api::text_up_to(1'000, "How the subject begins."))}),
                 list_audit),
      read_route(desk, {"/audit/trail", "checkTrail", "audit", "Checks the chain of hashes over the audit."},
                 {}, check_whole_trail),
      read_route(
          desk,
          {"/metrics/series", "listSeries", "metrics",
           "Series of metrics by the minute: [[unix seconds, "
           "value], …] by name."},
          {api::in_query("series", api::text_up_to(100, "Only this one.")),
           api::in_query("minutes", api::integer_from(1, kMinutesMax, "How far back; a day without it."))},
          show_series),
      read_route(desk,
                 {"/retention/plan", "getRetentionPlan", "retention",
                  "What retention would drop at that time; it "
                  "reads whole tables."},
                 {api::in_query("at", api::formatted(api::kTimestamp, "Now without it."))}, plan_retention)};
}

}  // namespace todoke::admin
