// Any bytes as a FIX message that the engine has refused because of its form, with `|` for the separator.
// What is read of it is cleaned, as the session's owner does it, and makes a result that can be stored and
// read again.
#include <algorithm>
#include <cstdint>
#include <string>

#include "orders/brokers/fix/engine/lenient.hpp"
#include "orders/brokers/fix/report.hpp"
#include "orders/brokers/fix/store.hpp"
#include "orders_results.hpp"

namespace {

using namespace todoke;
using namespace todoke::orders;
using todoke::fuzz::order_of;
using todoke::fuzz::require;
using todoke::fuzz::require_kept;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::replace(text.begin(), text.end(), '|', '\x01');
  auto read = fix::read_leniently(text);
  if (!read.is_report) return 0;
  require(!read.report.exec_id.empty() && !read.report.ord_status.empty());
  const auto report = cleaned(std::move(read.report));
  for (const auto time_in_force : {TimeInForce::ioc, TimeInForce::gtc}) {
    // The same report twice: an ExecID counts once.
    const auto view = view_of({report}, time_in_force);
    const auto twice = view_of({report, report}, time_in_force);
    require(view.state == twice.state && view.fills == twice.fills);
    if (!view.is_acknowledged() && view.state != FixView::State::rejected) continue;
    const auto result = result_of(view, order_of(time_in_force));
    require(result.status == ExecStatus::ok || result.fills.empty());
    require_kept(result);
  }
  return 0;
}
