#include "net/response_writer.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <stdexcept>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace todoke::net {
namespace {

constexpr int kSwitchingProtocols = 101;

bool token_char(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7F);
}

bool is_framing(std::string_view name, int status) {
  if (same_ignoring_case(name, "Connection")) return status != kSwitchingProtocols;
  for (const auto* own : {"Content-Length", "Transfer-Encoding", "Date", "X-Request-Id"}) {
    if (same_ignoring_case(name, own)) return true;
  }
  return false;
}

}  // namespace

bool valid_header(std::string_view name, std::string_view value) {
  return !name.empty() && std::all_of(name.begin(), name.end(), token_char) &&
         std::all_of(value.begin(), value.end(), value_char);
}

bool may_have_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

std::string response_head(const Response& response, const ResponseFrame& frame) {
  if (response.status < 100 || response.status > 599) throw std::invalid_argument("no such HTTP status");
  std::string head;
  head.reserve(512);
  const auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason_phrase(response.status),
                 http_date_now());
  if (response.stream) {
    if (!frame.http10) head += "Transfer-Encoding: chunked\r\n";
  } else if (may_have_body(response.status)) {
    fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
  }
  if (response.status != kSwitchingProtocols) {
    if (!frame.keep_alive) {
      head += "Connection: close\r\n";
    } else if (frame.http10) {
      head += "Connection: keep-alive\r\n";
    }
  }
  if (!frame.request_id.empty()) fmt::format_to(out, "X-Request-Id: {}\r\n", frame.request_id);
  for (const auto& [name, value] : response.headers.all()) {
    if (is_framing(name, response.status)) continue;
    if (!valid_header(name, value))
      throw std::invalid_argument("a response header that can't be sent: " + name);
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  head += "\r\n";
  return head;
}

std::string_view http_date_now() {
  static thread_local std::time_t made_for = -1;
  static thread_local std::string text;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now != made_for) {
    text = format_http_date(std::chrono::system_clock::from_time_t(now));
    made_for = now;
  }
  return text;
}

std::string_view reason_phrase(int status) {
  const auto known = boost::beast::http::int_to_status(static_cast<unsigned>(status));
  if (known == boost::beast::http::status::unknown) return "";
  const auto phrase = boost::beast::http::obsolete_reason(known);
  return {phrase.data(), phrase.size()};
}

}  // namespace todoke::net
