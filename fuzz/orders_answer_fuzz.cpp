// Any bytes as what a broker answers, and as a result that an operator writes by hand. The first byte chooses
// the status, the first line the header Retry-After. Whatever comes of it can be stored, read again as it
// was, and shown on a terminal.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "orders/brokers/http/answer.hpp"
#include "orders_results.hpp"

namespace {

using namespace todoke;
using namespace todoke::orders;
using todoke::fuzz::order_of;
using todoke::fuzz::require;
using todoke::fuzz::require_kept;

constexpr std::array<int, 16> kStatuses{200, 200, 200, 201, 202, 204, 301, 400,
                                        401, 404, 408, 409, 429, 500, 502, 503};
constexpr std::chrono::hours kRetryAfterMost(1);

void require_shown(const std::string& message) {
  require(std::none_of(message.begin(), message.end(),
                       [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; }));
}

void require_possible(const ExecResult& result, const Order& order) {
  Decimal sum;
  for (const auto& fill : result.fills) {
    require(fill.qty.is_positive());
    sum = sum + fill.qty;
  }
  require(sum == result.executed_qty && !(result.executed_qty > order.qty));
  require(result.status == ExecStatus::ok || result.fills.empty());
  require(result.status == ExecStatus::ok || !result.reason_code.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto line_end = std::min(rest.find('\n'), rest.size());
  const auto body = rest.substr(std::min(line_end + 1, rest.size()));
  auto response = net::json_response(kStatuses.at(data[0] % kStatuses.size()), std::string(body));
  response.headers.add("Retry-After", rest.substr(0, line_end));

  for (const auto time_in_force : {TimeInForce::ioc, TimeInForce::gtc}) {
    const auto order = order_of(time_in_force);
    const auto sent = read_send_answer(response, order);
    require_kept(sent.result);
    require_possible(sent.result, order);
    require_shown(sent.message);
    if (sent.retry_after) require(sent.retry_after->count() >= 0 && *sent.retry_after <= kRetryAfterMost);
    const auto found = read_find_answer(response, order);
    require_shown(found.message);
    if (found.answer == FindAnswer::found) {
      require_kept(found.result);
      require_possible(found.result, order);
    }
  }
  if (const auto by_hand = parse_exec_result(body)) {
    require_kept(*by_hand);
  } else {
    require(!by_hand.error().message.empty());
  }
  return 0;
}
