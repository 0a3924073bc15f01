#include "api/answers.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace todoke::api {
namespace {

constexpr std::chrono::milliseconds kRetryAfter(1'000);
constexpr std::size_t kTagBytes = 16;
constexpr std::string_view kWeak = "W/";

void set_retry_after(net::Response& response, std::chrono::milliseconds after) {
  const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(after).count());
  response.headers.set("Retry-After", std::to_string(seconds));
}

bool names_tag(std::string_view list, std::string_view tag) {
  while (!list.empty()) {
    auto entry = trimmed(cut_until(list, ','));
    if (entry.starts_with(kWeak)) entry.remove_prefix(kWeak.size());
    if (entry == "*" || entry == tag) return true;
  }
  return false;
}

bool has_it_already(const net::Request& request, std::string_view tag, std::optional<SystemTime> modified) {
  if (request.headers.has("If-None-Match")) return names_tag(request.headers.joined("If-None-Match"), tag);
  const auto since = parse_http_date(std::string(request.headers.get("If-Modified-Since")));
  return since && modified && seconds_of(*modified) <= seconds_of(*since);
}

}  // namespace

net::Response answer(int status, std::string json) {
  auto response = net::json_response(status, std::move(json));
  response.headers.set("Cache-Control", "no-store");
  return response;
}

net::Response no_content() {
  net::Response response;
  response.status = status::kNoContent;
  return response;
}

net::Response failure(int status, std::string_view code, std::string_view message, std::string_view details) {
  auto response = net::error_response(status, code, message, details);
  response.headers.set("Cache-Control", "no-store");
  return response;
}

net::Response invalid(const BadField& why) {
  JsonWriter details;
  details.begin_object().member("field", why.field).end_object();
  return failure(status::kUnprocessable, "VALIDATION_ERROR", why.text(), details.text());
}

net::Response too_many(std::chrono::milliseconds retry_after, std::string_view message,
                       std::string_view code) {
  auto response = failure(status::kTooManyRequests, code, message);
  set_retry_after(response, retry_after);
  return response;
}

net::Response unavailable(std::string_view message) {
  auto response = failure(status::kUnavailable, "UNAVAILABLE", message);
  set_retry_after(response, kRetryAfter);
  return response;
}

net::Response answer_to_caches(const net::Request& request, std::string json,
                               std::optional<SystemTime> modified, std::chrono::seconds max_age) {
  const auto digest = sha256({json});
  const auto tag = fmt::format("\"{}\"", to_hex(std::span(digest).first(kTagBytes)));
  net::Response response;
  if (has_it_already(request, tag, modified)) {
    response.status = status::kNotModified;
  } else {
    response = net::json_response(status::kOk, std::move(json));
  }
  response.headers.set("ETag", tag);
  response.headers.set("Cache-Control", fmt::format("public, max-age={}", max_age.count()));
  if (modified) response.headers.set("Last-Modified", format_http_date(*modified));
  return response;
}

}  // namespace todoke::api
