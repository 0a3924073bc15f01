// Asking for a copy or the deletion of everything that is stored about the caller.
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "users/door.hpp"
#include "users/json_parts.hpp"
#include "users/personal_data_sql.hpp"
#include "users/routes.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

constexpr std::string_view kExport = "export";
constexpr std::string_view kDeletion = "deletion";
constexpr std::string_view kZip = "application/zip";

void write_data_request(JsonWriter& json, const pg::Row& row) {
  json.begin_object()
      .member("request_id", row.get<std::string>("request_id"))
      .member("kind", row.get<std::string>("kind"))
      .member("status", row.get<std::string>("status"))
      .member("bytes", row.get<std::int64_t>("bytes"));
  write_or_null(json, "error", row.get<std::optional<std::string>>("error"));
  json.member("created_at", format_timestamp(row.get<SystemTime>("created_at")));
  write_or_null(json, "finished_at", row.get<std::optional<SystemTime>>("finished_at"));
  write_or_null(json, "expires_at", row.get<std::optional<SystemTime>>("expires_at"));
  json.end_object();
}

net::Response no_data_request() {
  return api::failure(status::kNotFound, "NOT_FOUND", "there is no such request of the caller");
}

Task<net::Response> tell_data_request(const Desk& desk, const api::Call& call, std::string_view kind,
                                      std::string request) {
  pg::Params params(call.caller.name, kind, request);
  const auto rows = co_await desk.ask(sql::kGetDataRequest, std::move(params));
  if (rows.empty()) co_return no_data_request();
  JsonWriter json;
  write_data_request(json, rows.one());
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> ask_for_data(const Desk& desk, const api::Call& call, std::string_view kind) {
  const auto rows = co_await desk.ask(sql::kAskForData, {call.caller.name, kind});
  auto response = co_await tell_data_request(desk, call, kind, rows.one().get<std::string>("request_id"));
  co_return response;
}

// The pieces of a copy, one from the database at a time.
class ChunkStream final : public net::BodyStream {
 public:
  ChunkStream(DeskPtr desk, std::string request, std::int64_t bytes)
      : desk_(std::move(desk)), request_(std::move(request)), left_(bytes) {}

  Task<std::optional<std::string>> next() override {
    if (left_ == 0) co_return std::nullopt;
    if (is_stopped_) throw std::runtime_error("the node stops");
    const auto rows = co_await desk_->ask(sql::kReadChunk, pg::Params(request_, number_));
    if (rows.empty()) throw std::runtime_error("the copy was thrown away");
    const auto bytes = rows.one().get<pg::ByteView>(0);
    ++number_;
    left_ -= static_cast<std::int64_t>(bytes.size());
    co_return std::string(bytes.begin(), bytes.end());
  }
  void stop() override { is_stopped_ = true; }

 private:
  const DeskPtr desk_;
  const std::string request_;
  std::int64_t left_;
  std::int32_t number_ = 0;
  bool is_stopped_ = false;
};

net::Response not_ready(const std::string& is) {
  JsonWriter details;
  details.begin_object().member("status", is).end_object();
  return api::failure(status::kConflict, "NOT_READY", "there is no copy to download", details.text());
}

Task<net::Response> download(DeskPtr desk, const api::Call& call) {
  auto request = call.text("request_id");
  const auto rows = co_await desk->ask(sql::kGetDataRequest, {call.caller.name, kExport, request});
  if (rows.empty()) co_return no_data_request();
  const auto row = rows.one();
  const auto is = row.get<std::string>("status");
  if (is == "expired") co_return api::failure(status::kGone, "EXPIRED", "the copy was thrown away");
  if (is != "succeeded") co_return not_ready(is);
  net::Response response;
  response.headers.set("Content-Type", kZip);
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("Content-Disposition",
                       fmt::format("attachment; filename=\"personal-data-{}.zip\"", request));
  response.stream =
      std::make_shared<ChunkStream>(std::move(desk), std::move(request), row.get<std::int64_t>("bytes"));
  co_return response;
}

api::Schema data_request_schema() {
  const auto time = [](std::string_view meaning) {
    return api::nullable(api::formatted(api::kTimestamp, meaning));
  };
  return api::named(
      "PersonalDataRequest",
      api::object_of(
          {{"request_id", api::formatted(api::kUuid, "Of the request.")},
           {"kind", api::choice_of({"export", "deletion"}, "What was asked for.")},
           {"status", api::choice_of({"pending", "running", "succeeded", "failed", "cancelled", "expired"},
                                     "expired: the copy was thrown away.")},
           {"bytes", api::integer_from(0, 9'007'199'254'740'991, "Size of the copy.")},
           {"error", api::nullable(api::text_up_to(2'048, "Why it failed."))},
           {"created_at", api::formatted(api::kTimestamp, "When it was asked.")},
           {"finished_at", time("When it was done.")},
           {"expires_at", time("When the copy is thrown away.")}}));
}

const api::Failure kNoDataRequest{404, "NOT_FOUND", "There is no such request of the caller."};

api::Route asks(std::string_view path, std::string_view name, std::string_view meaning, const DeskPtr& desk,
                std::string_view kind) {
  return {.method = "POST",
          .path = path,
          .name = name,
          .tag = "personal data",
          .meaning = meaning,
          .access = &access::kAccount,
          .answers = {{.meaning = "The request.", .body = data_request_schema()}},
          .handler = [desk, kind](const api::Call& call) { return ask_for_data(*desk, call, kind); }};
}

api::Route tells(std::string_view path, std::string_view name, const DeskPtr& desk, std::string_view kind) {
  return {.method = "GET",
          .path = path,
          .name = name,
          .tag = "personal data",
          .meaning = "What became of a request. Its owner can read it also when everything else is deleted.",
          .access = &access::kOwner,
          .parameters = {api::in_path("request_id", api::formatted(api::kUuid, "Of the request."))},
          .answers = {{.meaning = "The request.", .body = data_request_schema()}},
          .failures = {kNoDataRequest},
          .handler = [desk, kind](const api::Call& call) {
            return tell_data_request(*desk, call, kind, call.text("request_id"));
          }};
}

}  // namespace

void add_personal_data_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(asks("/personal-data-export-requests", "requestExport",
                        "Asks for a copy of everything that is stored about the caller. While one is being "
                        "made, it is that one.",
                        desk, kExport));
  routes.push_back(tells("/personal-data-export-requests/{request_id}", "getExport", desk, kExport));
  routes.push_back({.method = "GET",
                    .path = "/personal-data-export-requests/{request_id}/download",
                    .name = "downloadExport",
                    .tag = "personal data",
                    .meaning = "The copy, a zip file of JSON lines; for seven days.",
                    .access = &access::kAccount,
                    .parameters = {api::in_path("request_id", api::formatted(api::kUuid, "Of the request."))},
                    .answers = {{.meaning = "The zip file.", .content_type = kZip}},
                    .failures = {kNoDataRequest,
                                 {409, "NOT_READY", "It is not made, or failed; details.status says which."},
                                 {410, "EXPIRED", "The copy was thrown away."}},
                    .handler = [desk](const api::Call& call) { return download(desk, call); }});
  routes.push_back(asks("/personal-data-deletion-requests", "requestDeletion",
                        "Asks for the deletion of everything that is stored about the caller, the events "
                        "too. It can't be undone, and closes the account.",
                        desk, kDeletion));
  routes.push_back(tells("/personal-data-deletion-requests/{request_id}", "getDeletion", desk, kDeletion));
}

}  // namespace todoke::users
