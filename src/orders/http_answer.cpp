#include "orders/http_answer.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "orders/fills.hpp"
#include "orders/json_value.hpp"
#include "orders/text.hpp"
#include "orders/timestamp.hpp"

namespace todoke::orders {
namespace {

using Kind = JsonValue::Kind;

// What a broker says beyond is not kept.
constexpr std::size_t kMessageBytesMax = 200;
constexpr std::size_t kRefBytesMax = 256;
constexpr std::size_t kFillsMax = 1'000;
// A broker that asks for more is not believed.
constexpr std::chrono::seconds kRetryAfterMost = std::chrono::hours(1);
constexpr std::string_view kDuplicate = "DUPLICATE_ORDER";

// Cut where a character begins: half of one is refused by the database.
std::string text_in(const JsonValue& document, std::string_view name, std::size_t bytes_max) {
  const auto* value = document.member(name);
  if (value == nullptr || !value->is(Kind::string)) return {};
  const auto& text = value->text;
  if (text.size() <= bytes_max) return text;
  auto end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

// A text, or a number as it is written.
std::string ref_in(const JsonValue& document) {
  const auto* value = document.member("order_ref");
  if (value != nullptr && value->is(Kind::number)) return value->text.substr(0, kRefBytesMax);
  return text_in(document, "order_ref", kRefBytesMax);
}

// Without control characters: it goes into a column and onto a terminal.
std::string message_in(const JsonValue& document) {
  return without_controls(text_in(document, "message", kMessageBytesMax));
}

std::optional<Decimal> number_in(const JsonValue& document, std::string_view name) {
  const auto* value = document.member(name);
  if (value == nullptr || !value->is(Kind::number)) return std::nullopt;
  auto number = Decimal::parse(value->text);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<std::vector<Fill>> fills_in(const JsonValue& document) {
  std::vector<Fill> fills;
  const auto* list = document.member("fills");
  if (list == nullptr) return fills;
  if (!list->is(Kind::array) || list->values.size() > kFillsMax) return std::nullopt;
  for (const auto& value : list->values) {
    if (!value.is(Kind::object)) return std::nullopt;
    const auto px = number_in(value, "px");
    const auto qty = number_in(value, "qty");
    const auto ts = parse_timestamp(text_in(value, "ts", kMessageBytesMax));
    if (!px || !qty || !qty->is_positive() || !ts) return std::nullopt;
    fills.push_back({*px, *qty, *ts});
  }
  return fills;
}

// Nothing: it is no answer that can be read.
std::optional<ExecResult> result_in(std::string_view body, const Order& order) {
  const auto document = read_json(body);
  if (!document || !document->is(Kind::object)) return std::nullopt;
  const auto status = text_in(*document, "status", kMessageBytesMax);
  ExecResult result;
  result.broker = {"http", ref_in(*document)};
  auto fills = fills_in(*document);
  if (!fills) return std::nullopt;
  // A refusal with fills contradicts itself.
  if (status == "error" && fills->empty()) {
    result.reason_code = reason::kBrokerRejected;
    return result;
  }
  if (status != "ok") return std::nullopt;
  result.status = ExecStatus::ok;
  result.fills = std::move(*fills);
  sum_fills(result, order);
  if (result.executed_qty > order.qty) return std::nullopt;
  if (order.time_in_force == TimeInForce::gtc && result.executed_qty < order.qty) {
    result.warnings.emplace_back(warning::kWorking);
  }
  return result;
}

// A number of seconds, or a date as HTTP writes it.
std::optional<std::chrono::seconds> pause_in(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!text.empty() && end == text.data() + text.size()) {
    return error == std::errc::result_out_of_range ? kRetryAfterMost : std::chrono::seconds(count);
  }
  std::tm date{};
  const char* rest = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  return std::chrono::seconds(timegm(&date) - std::time(nullptr));
}

std::optional<std::chrono::milliseconds> retry_after_in(const net::Response& response) {
  const auto pause = pause_in(std::string(response.headers.get("Retry-After")));
  if (!pause || pause->count() < 0) return std::nullopt;
  return std::min(*pause, kRetryAfterMost);  // in seconds: a number of the broker's may have no milliseconds
}

bool says_duplicate(const net::Response& response) {
  const auto document = read_json(response.body);
  if (!document || !document->is(Kind::object)) return false;
  return text_in(*document, "reason_code", kMessageBytesMax) == kDuplicate ||
         text_in(*document, "code", kMessageBytesMax) == kDuplicate;
}

std::string said(const net::Response& response) {
  const auto document = read_json(response.body);
  const auto message = document && document->is(Kind::object) ? message_in(*document) : std::string();
  return fmt::format("the broker answered {}{}", response.status, message.empty() ? "" : ": " + message);
}

}  // namespace

SendOutcome read_send_answer(const net::Response& response, const Order& order) {
  const int status = response.status;
  if (status >= 200 && status < 300) {
    auto result = result_in(response.body, order);
    if (!result) {
      return failure(reason::kInternalError, "the broker's answer can't be read", true);
    }
    SendOutcome outcome;
    outcome.duplicate = result->status == ExecStatus::error && says_duplicate(response);
    if (result->status == ExecStatus::error) outcome.message = said(response);
    outcome.result = std::move(*result);
    return outcome;
  }
  switch (status) {
    case 401:
    case 403:
    case 404:
      return failure(reason::kBrokerDown, said(response), false);
    case 408:
      return failure(reason::kBrokerTimeout, said(response), true);
    case 425:
    case 429:
    case 503: {
      auto outcome = failure(reason::kBrokerDown, said(response), false);
      outcome.retry_after = retry_after_in(response);
      return outcome;
    }
    default:
      break;
  }
  // It may have failed before or after it took the order.
  if (status >= 500) return failure(reason::kBrokerDown, said(response), true);
  if (status < 400) return failure(reason::kBrokerDown, said(response), false);
  auto outcome = failure(reason::kBrokerRejected, said(response), false);
  outcome.duplicate = says_duplicate(response);
  return outcome;
}

FindOutcome read_find_answer(const net::Response& response, const Order& order) {
  FindOutcome outcome;
  if (response.status == 404) {
    outcome.answer = FindAnswer::not_found;
    return outcome;
  }
  auto result = response.status == 200 ? result_in(response.body, order) : std::nullopt;
  // "There is one already" says nothing of what became of it.
  if (result && result->status == ExecStatus::error && says_duplicate(response)) result.reset();
  if (!result) {
    outcome.message = response.status == 200 ? "the broker's answer can't be read" : said(response);
    return outcome;
  }
  outcome.answer = FindAnswer::found;
  outcome.result = std::move(*result);
  return outcome;
}

SendOutcome read_send_failure(const net::ClientError& error) {
  using Failure = net::ClientError::Kind;
  switch (error.kind()) {
    case Failure::held_back:
      return held_back();
    case Failure::timeout:
      return failure(reason::kBrokerTimeout, error.what(), error.peer_may_have_seen());
    case Failure::bad_response:
      return failure(reason::kInternalError, error.what(), true);
    case Failure::connect:
    case Failure::lost_unsent:
    case Failure::lost_sent:
      break;
  }
  return failure(reason::kBrokerDown, error.what(), error.peer_may_have_seen());
}

}  // namespace todoke::orders
