#include "orders/brokers/http/answer.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/timestamp.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/json_value.hpp"
#include "orders/core/text.hpp"

namespace todoke::orders {
namespace {

using Kind = JsonValue::Kind;

// Longer texts of a broker are cut here.
constexpr std::size_t kMessageBytesMax = 200;
constexpr std::size_t kRefBytesMax = 256;
constexpr std::size_t kFillsMax = 1'000;
// A longer Retry-After is cut to this.
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

// The content of a body. `unread` names the members that could not be read; empty: all could.
struct Answer {
  ExecResult result;
  std::string unread;
};

std::optional<Fill> fill_in(const JsonValue& value) {
  if (!value.is(Kind::object)) return std::nullopt;
  const auto px = number_in(value, "px");
  const auto qty = number_in(value, "qty");
  const auto ts = parse_timestamp(text_in(value, "ts", kMessageBytesMax));
  if (!px || !qty || !qty->is_positive() || !ts) return std::nullopt;
  return Fill{*px, *qty, *ts};
}

// Those that can be read.
std::vector<Fill> fills_in(const JsonValue& document, std::string& unread) {
  std::vector<Fill> fills;
  const auto* list = document.member("fills");
  if (list == nullptr) return fills;
  if (!list->is(Kind::array) || list->values.size() > kFillsMax) {
    unread = "fills";
    return fills;
  }
  for (std::size_t i = 0; i < list->values.size(); ++i) {
    if (auto fill = fill_in(list->values[i])) {
      fills.push_back(std::move(*fill));
    } else if (unread.empty()) {
      unread = path_of("fills", i);
    }
  }
  return fills;
}

// Searches `status` in a body that read_json refuses (bytes that are no UTF-8, a member twice, an end that is
// missing): whether the object says "ok", and nothing else, as its own status.
class StatusScan {
 public:
  explicit StatusScan(std::string_view text) : rest_(text) {}

  bool says_ok() {
    bool is_ok = false;
    int depth = 0;
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '"') {
        const auto name = read_string();
        if (!name) return is_ok;
        if (depth != 1 || *name != "status" || !skip_colon()) continue;
        if (read_string() != "ok") return false;
        is_ok = true;
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      rest_.remove_prefix(1);
    }
    return is_ok;
  }

 private:
  void skip_space() {
    const auto next = rest_.find_first_not_of(" \t\n\r");
    rest_.remove_prefix(next == std::string_view::npos ? rest_.size() : next);
  }
  bool skip_colon() {
    skip_space();
    if (!rest_.starts_with(':')) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // The text between quotes, with its escapes as they stand. Nothing: there is no string, or it has no end.
  std::optional<std::string_view> read_string() {
    skip_space();
    if (!rest_.starts_with('"')) return std::nullopt;
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '\\') {
        ++at;
      } else if (rest_[at] == '"') {
        const auto inside = rest_.substr(1, at - 1);
        rest_.remove_prefix(at + 1);
        return inside;
      }
    }
    rest_ = {};
    return std::nullopt;
  }

  std::string_view rest_;
};

// The outcome of an order that the broker has acknowledged, whatever else the answer says.
Answer acknowledged(std::vector<Fill> fills, std::string order_ref, std::string unread, const Order& order) {
  Answer answer;
  auto& result = answer.result;
  result.status = ExecStatus::ok;
  result.broker = {"http", std::move(order_ref)};
  result.fills = std::move(fills);
  sum_fills(result, order);
  if (result.executed_qty > order.qty) {
    unread = "fills: more than the order's qty";
    result.fills.clear();
    result.warnings.clear();
    sum_fills(result, order);
  }
  // Then the fills are unknown.
  if (!unread.empty()) {
    result.warnings = {std::string(warning::kUnreadable)};
  }
  if (order.time_in_force == TimeInForce::gtc && result.executed_qty < order.qty) {
    result.warnings.emplace_back(warning::kWorking);
  }
  answer.unread = std::move(unread);
  return answer;
}

// Nothing: the answer can't be read.
std::optional<Answer> answer_in(std::string_view body, const Order& order) {
  const auto document = read_json(body);
  if (!document || !document->is(Kind::object)) {
    if (!body.starts_with('{') || !StatusScan(body).says_ok()) return std::nullopt;
    return acknowledged({}, "", document ? "body" : "body: " + document.error().message, order);
  }
  const auto status = text_in(*document, "status", kMessageBytesMax);
  std::string unread;
  auto fills = fills_in(*document, unread);
  if (status == "ok") return acknowledged(std::move(fills), ref_in(*document), std::move(unread), order);
  // A refusal with fills contradicts itself.
  if (status != "error" || !fills.empty() || !unread.empty()) return std::nullopt;
  Answer answer;
  answer.result.broker = {"http", ref_in(*document)};
  answer.result.reason_code = reason::kBrokerRejected;
  return answer;
}

// A number of seconds, or a date as HTTP writes it.
std::optional<std::chrono::seconds> pause_in(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (!text.empty() && end == text.data() + text.size()) {
    return error == std::errc::result_out_of_range ? kRetryAfterMost : std::chrono::seconds(count);
  }
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  return std::chrono::ceil<std::chrono::seconds>(*date - std::chrono::system_clock::now());
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
    auto answer = answer_in(response.body, order);
    if (!answer) {
      return failure(reason::kInternalError, "the broker's answer can't be read", true);
    }
    SendOutcome outcome;
    outcome.duplicate = answer->result.status == ExecStatus::error && says_duplicate(response);
    if (answer->result.status == ExecStatus::error) outcome.message = said(response);
    outcome.result = std::move(answer->result);
    outcome.unread = std::move(answer->unread);
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
    case 429: {
      auto outcome = failure(reason::kBrokerDown, said(response), false);
      outcome.retry_after = retry_after_in(response);
      return outcome;
    }
    default:
      break;
  }
  // The broker may have failed before or after it took the order: a 503 may also come from a proxy whose
  // upstream has the order and has not answered.
  if (status >= 500) {
    auto outcome = failure(reason::kBrokerDown, said(response), true);
    outcome.retry_after = retry_after_in(response);
    return outcome;
  }
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
  auto answer = response.status == 200 ? answer_in(response.body, order) : std::nullopt;
  // "There is one already" does not tell the outcome.
  if (answer && answer->result.status == ExecStatus::error && says_duplicate(response)) answer.reset();
  if (!answer) {
    // Without the broker's words: commands print it.
    outcome.message = response.status == 200 ? "the broker's answer can't be read"
                                             : fmt::format("the broker answered {}", response.status);
    return outcome;
  }
  outcome.answer = FindAnswer::found;
  outcome.result = std::move(answer->result);
  outcome.unread = std::move(answer->unread);
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
