#include "net/response_writer.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <stdexcept>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "net/text.hpp"

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
  if (may_have_body(response.status)) fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
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
    // Without a locale: names of days and months are English by definition.
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto utc = fmt::gmtime(now);
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                       kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
    made_for = now;
  }
  return text;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

}  // namespace todoke::net
