// What the node says of events and people, and what people report to it: labels, trust, reports.
#include <algorithm>
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "nostr/event_id.hpp"
#include "nostr/signature.hpp"
#include "users/door.hpp"
#include "users/event_json.hpp"
#include "users/json_parts.hpp"
#include "users/rights.hpp"
#include "users/routes.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;
using Published = outbox::Published;

constexpr std::string_view kReportMember = "event";
constexpr std::string_view kEventTarget = "event:";
constexpr std::string_view kPubkeyTarget = "pubkey:";

bool is_target(std::string_view text) {
  for (const auto prefix : {kEventTarget, kPubkeyTarget}) {
    if (text.starts_with(prefix)) return api::kHexKey.matches(text.substr(prefix.size()));
  }
  return false;
}

const api::Format kTarget{"^(event|pubkey):[0-9a-f]{64}$", is_target,
                          "event: or pubkey: and 64 hex digits in lower case"};

Task<net::Response> tell_labels(const Desk& desk, const api::Call& call) {
  const auto labels = desk.ports().labels;
  if (!labels) co_return not_available("labels");
  const auto deadline = Deadline::after(kCallMax);
  auto topics = co_await labels->topics_of(call.text("target"), deadline);
  auto refused = co_await check_service(desk, call, std::move(topics), service::kModeration);
  if (refused) co_return std::move(*refused);
  const auto limit = static_cast<std::size_t>(call.integer_or("limit", kPageDefault));
  const auto page =
      co_await labels->labels_of(call.text("target"), limit, call.text_if("cursor").value_or(""), deadline);
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const auto& event : page.events) json.raw(event);
  json.end_array();
  write_next_cursor(json, page.cursor);
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> tell_trust(const Desk& desk, const api::Call& call, TrustSource::Method method) {
  const auto trust = desk.ports().trust;
  if (!trust) co_return not_available("trust");
  auto refused = co_await spend_for_service(desk, call, service::kTrust, metric::kTrust);
  if (refused) co_return std::move(*refused);
  auto score = co_await trust->score_of(method, call.text("subject"), Deadline::after(kCallMax));
  if (!score) co_return api::failure(status::kNotFound, "NOT_FOUND", "nothing is known of the subject");
  co_return api::answer(status::kOk, std::move(*score));
}

Checked<nostr::Event> report_in(const Desk& desk, const api::Call& call) {
  auto event = event_in(desk, call, kReportMember);
  if (!event) return event;
  if (event->kind() != nostr::kReport) return bad_field(kReportMember, "must be of kind 39005");
  if (event->pubkey().hex() != call.caller.name)
    return bad_field(kReportMember, "must be signed by who sends it");
  if (!nostr::has_right_id(*event) || !nostr::has_right_signature(*event))
    return bad_field(kReportMember, "has a bad signature");
  return event;
}

net::Response answer_to(const nostr::Event& event, const Published& published) {
  if (published.kind == Published::Kind::not_now) return api::unavailable(published.message);
  if (!published.is_accepted())
    return api::failure(status::kUnprocessable, "EVENT_REFUSED", published.message);
  const bool is_new = published.kind == Published::Kind::stored;
  JsonWriter json;
  json.begin_object()
      .member("event_id", event.id().hex())
      .member("status", is_new ? "stored" : "duplicate")
      .end_object();
  return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> take_report(const Desk& desk, const api::Call& call) {
  const auto& events = desk.ports().events;
  if (!events) co_return not_available("reports");
  const auto event = report_in(desk, call);
  if (!event) co_return api::invalid(event.error());
  auto refused = co_await spend(desk, call, metric::kReports, event->id().hex());
  if (refused) co_return std::move(*refused);
  const auto published = co_await events->publish(std::string(event->json()), outbox::From::api,
                                                  event->pubkey(), Deadline::after(kCallMax));
  co_return answer_to(*event, published);
}

api::Route trust_route(std::string_view path, std::string_view name, std::string_view meaning,
                       const DeskPtr& desk, TrustSource::Method method) {
  return {.method = "GET",
          .path = path,
          .name = name,
          .tag = "trust",
          .meaning = meaning,
          .access = &access::kMember,
          .parameters = {api::in_query("subject", api::formatted(api::kHexKey, "A public key."),
                                       api::Needed::always)},
          .answers = {{.meaning = "What the node thinks.", .body = api::any_object("The assertion.")}},
          .failures = {kSubscriptionRequired,
                       kQuotaExceeded,
                       kNotAvailable,
                       {404, "NOT_FOUND", "Nothing is known of the subject."}},
          .handler = [desk, method](const api::Call& call) { return tell_trust(*desk, call, method); }};
}

api::Route labels_route(const DeskPtr& desk) {
  return {.method = "GET",
          .path = "/labels",
          .name = "getLabels",
          .tag = "moderation",
          .meaning =
              "The labels (kind 39006) of an event or a key. Needs an active subscription to a topic "
              "of the target with the service moderation.",
          .access = &access::kMember,
          .parameters = {api::in_query("target", api::formatted(kTarget, "What the labels are of."),
                                       api::Needed::always),
                         limit_parameter(), cursor_parameter()},
          .answers = {{.meaning = "A page.", .body = page_of(given_event(), "The newest first.")}},
          .failures = {kSubscriptionRequired, kNotAvailable},
          .handler = at(desk, tell_labels)};
}

api::Route report_route(const DeskPtr& desk) {
  return {
      .method = "POST",
      .path = "/reports",
      .name = "report",
      .tag = "moderation",
      .meaning =
          "Takes a report, an event of kind 39005 that the caller has signed, as the relay would. "
          "Counts as moderation.report_submits.",
      .access = &access::kMember,
      .body = api::object_of({{kReportMember, event_schema("The report, as an object or as JSON text.")}}),
      .answers = {{.meaning = "It is stored.",
                   .body = api::object_of({{"event_id", api::formatted(api::kHexKey, "Of the report.")},
                                           {"status", api::choice_of({"stored", "duplicate"},
                                                                     "duplicate: it was there already.")}})}},
      .failures = {kQuotaExceeded,
                   kNotAvailable,
                   {422, "EVENT_REFUSED", "The relay does not take the event; message says why."}},
      .handler = at(desk, take_report),
      .body_bytes_max = kEventBodyMax};
}

}  // namespace

void add_verdict_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(labels_route(desk));
  routes.push_back(trust_route("/trust/report-based", "getReportBasedTrust",
                               "How much is reported of a key. Needs any active subscription with the "
                               "service trust. Counts as trust.requests.",
                               desk, TrustSource::Method::report_based));
  routes.push_back(trust_route("/trust/communication-density", "getCommunicationDensity",
                               "How much others talk with a key. Needs any active subscription with the "
                               "service trust. Counts as trust.requests.",
                               desk, TrustSource::Method::communication_density));
  routes.push_back(report_route(desk));
}

}  // namespace todoke::users
