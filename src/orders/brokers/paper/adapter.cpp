#include "orders/brokers/paper/adapter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "orders/brokers/paper/config.hpp"
#include "orders/brokers/paper/paper_sql.hpp"
#include "orders/core/exec_result.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

struct Named {
  std::string_view name;
  PaperAnswer answer;
};
constexpr std::array kAnswers{
    Named{"fill", PaperAnswer::fill},     Named{"partial", PaperAnswer::partial},
    Named{"reject", PaperAnswer::reject}, Named{"timeout", PaperAnswer::timeout},
    Named{"lost", PaperAnswer::lost},     Named{"down", PaperAnswer::down},
};

// FNV-1a: spreads well enough for draws, and is the same on every machine.
std::uint64_t spread(std::uint64_t seed, std::string_view text, std::uint64_t number) {
  std::uint64_t hash = 14'695'981'039'346'656'037ULL ^ (seed * 0x9E37'79B9'7F4A'7C15ULL);
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 1'099'511'628'211ULL; };
  for (const char c : text) mix(static_cast<std::uint8_t>(c));
  for (int shift = 0; shift < 64; shift += 8) mix(static_cast<std::uint8_t>(number >> shift));
  return hash ^ (hash >> 29U);
}

Decimal half(const Decimal& qty) {
  return qty * *Decimal::parse("0.5");
}

}  // namespace

Expected<PaperOptions> PaperOptions::from(const Config& config) {
  PaperOptions options;
  options.latency = config.get(keys::kPaperLatency);
  options.partial_percent = static_cast<int>(config.get(keys::kPaperPartial));
  options.reject_percent = static_cast<int>(config.get(keys::kPaperReject));
  options.timeout_percent = static_cast<int>(config.get(keys::kPaperTimeout));
  options.lost_percent = static_cast<int>(config.get(keys::kPaperLost));
  options.outage = config.get(keys::kPaperOutage);
  options.seed = static_cast<std::uint64_t>(config.get(keys::kPaperSeed));
  if (options.partial_percent + options.reject_percent + options.timeout_percent + options.lost_percent >
      100) {
    return refuse("the percentages of broker.paper add up to more than 100");
  }
  for (const auto& name : config.get(keys::kPaperFirst)) {
    const auto* const found = std::find_if(kAnswers.begin(), kAnswers.end(),
                                           [&](const Named& named) { return named.name == name; });
    if (found == kAnswers.end()) {
      return refuse(fmt::format(
          "broker.paper.first: '{}' is none of fill, partial, reject, timeout, lost and down", name));
    }
    options.first.push_back(found->answer);
  }
  return options;
}

PaperAnswer paper_answer(const PaperOptions& options, std::string_view key, std::size_t tried) {
  if (tried < options.first.size()) return options.first[tried];
  if (!options.first.empty()) return PaperAnswer::fill;
  // Whether an order is rejected or filled in part belongs to the order; a lost answer to the try.
  const auto of_order = static_cast<int>(spread(options.seed, key, 0) % 100);
  const auto of_try = static_cast<int>(spread(options.seed, key, tried + 1) % 100);
  if (of_try < options.timeout_percent) return PaperAnswer::timeout;
  if (of_try < options.timeout_percent + options.lost_percent) return PaperAnswer::lost;
  if (of_order < options.reject_percent) return PaperAnswer::reject;
  if (of_order < options.reject_percent + options.partial_percent) return PaperAnswer::partial;
  return PaperAnswer::fill;
}

Decimal paper_price(const PaperOptions& options, std::string_view instrument) {
  // From 1.00 to 1000.99.
  const auto cents = 100 + spread(options.seed, instrument, 0) % 100'000;
  return *Decimal::parse(fmt::format("{}.{:02}", cents / 100, cents % 100));
}

PaperAdapter::PaperAdapter(PaperOptions options, pg::Pool& pool, const Clock& clock)
    : options_(std::move(options)), pool_(pool), clock_(clock) {}

bool PaperAdapter::is_down() {
  if (!first_order_at_) first_order_at_ = clock_.steady();
  return clock_.steady() - *first_order_at_ < options_.outage;
}

Task<SendOutcome> PaperAdapter::send(SendRequest request, Deadline deadline) {
  if (!request.may_go()) co_return held_back();
  if (is_down())
    co_return failure(reason::kBrokerDown, "the paper broker is out of order, as configured", false);
  // By the claim and not by a count of its own: so it is the same after a restart, and for every worker.
  const auto earlier = static_cast<std::size_t>(std::max<std::int64_t>(request.claim_no, 1) - 1);
  const auto answer = paper_answer(options_, request.idempotency_key, earlier);
  if (answer == PaperAnswer::down) {
    co_return failure(reason::kBrokerDown, "the paper broker is out of order, as configured", false);
  }
  if (options_.latency.count() > 0)
    co_await sleep_for(std::min<std::chrono::nanoseconds>(options_.latency, deadline.left()));
  if (deadline.passed() || answer == PaperAnswer::timeout) {
    co_await sleep_for(deadline.left());
    co_return failure(reason::kBrokerTimeout, "no answer in time", true);
  }
  if (answer == PaperAnswer::reject) {
    co_return failure(reason::kBrokerRejected, "rejected, as configured", false);
  }
  std::exception_ptr broken;
  std::optional<pg::Lease> book;
  try {
    book.emplace(co_await pool_.acquire(deadline));
  } catch (const pg::DatabaseError&) {
    broken = std::current_exception();
  }
  // Up to here the broker has not heard of the order.
  if (broken) {
    co_return failure(reason::kBrokerDown,
                      "no connection to the paper broker's book (database.pool_max): " + describe(broken),
                      false);
  }
  Booked booked;
  try {
    booked = co_await execute(**book, request, answer, deadline);
  } catch (const pg::DatabaseError&) {
    broken = std::current_exception();
  }
  // It goes back before an answer is held back.
  book.reset();
  // Executed or not: the answer did not come.
  if (broken) co_return failure(reason::kBrokerTimeout, "the paper broker's book: " + describe(broken), true);
  if (answer == PaperAnswer::lost) {
    co_await sleep_for(deadline.left());
    co_return failure(reason::kBrokerTimeout, "no answer in time", true);
  }
  if (!booked.is_new) {
    auto outcome = failure(reason::kBrokerRejected, "duplicate order", false);
    outcome.duplicate = true;
    co_return outcome;
  }
  SendOutcome outcome;
  outcome.result = result_of(booked, *request.order);
  co_return outcome;
}

Task<PaperAdapter::Booked> PaperAdapter::execute(pg::Connection& book, const SendRequest& request,
                                                 PaperAnswer answer, Deadline deadline) {
  const auto& order = *request.order;
  const auto px = order.price.value_or(paper_price(options_, order.instrument));
  const bool is_partial = answer == PaperAnswer::partial && order.time_in_force != TimeInForce::fok;
  const bool is_unfilled = answer == PaperAnswer::partial && !is_partial;
  const auto qty = is_unfilled ? Decimal() : is_partial ? half(order.qty) : order.qty;
  const auto* const outcome = is_unfilled ? "unfilled" : is_partial ? "partial" : "filled";
  const auto ref = fmt::format(
      "P-{:016x}", spread(options_.seed, request.broker_id, static_cast<std::uint64_t>(request.outbox_id)));
  pg::Params params(request.broker_id, request.outbox_id, ref, outcome, px.text(), qty.text());
  const auto rows = co_await book.query(sql::kPaperExecute, std::move(params), deadline);
  const auto row = rows.one();
  co_return Booked{row.get<bool>(0),
                   row.get<std::string>(1),
                   row.get<std::string>(2),
                   *Decimal::parse(row.get<std::string>(3)),
                   *Decimal::parse(row.get<std::string>(4)),
                   row.get<SystemTime>(5)};
}

Task<FindOutcome> PaperAdapter::find(SendRequest request, Deadline deadline) {
  FindOutcome outcome;
  if (is_down()) {
    outcome.message = "the paper broker is out of order, as configured";
    co_return outcome;
  }
  std::exception_ptr broken;
  pg::Result rows;
  try {
    const auto lease = co_await pool_.acquire(deadline);
    pg::Params params(request.broker_id, request.outbox_id);
    rows = co_await lease->query(sql::kPaperFind, std::move(params), deadline);
  } catch (const pg::DatabaseError&) {
    broken = std::current_exception();
  }
  if (broken) {
    outcome.message = describe(broken);
    co_return outcome;
  }
  outcome.answer = rows.empty() ? FindAnswer::not_found : FindAnswer::found;
  if (rows.empty()) co_return outcome;
  const auto row = rows.one();
  const Booked booked{false,
                      row.get<std::string>(0),
                      row.get<std::string>(1),
                      *Decimal::parse(row.get<std::string>(2)),
                      *Decimal::parse(row.get<std::string>(3)),
                      row.get<SystemTime>(4)};
  outcome.result = result_of(booked, *request.order);
  co_return outcome;
}

ExecResult PaperAdapter::result_of(const Booked& booked, const Order& order) {
  ExecResult result;
  result.status = ExecStatus::ok;
  result.broker = {"paper", booked.order_ref};
  if (!booked.qty.is_zero()) result.fills.push_back({booked.px, booked.qty, booked.executed_at});
  sum_fills(result, order);
  if (order.time_in_force == TimeInForce::gtc && result.executed_qty < order.qty) {
    result.warnings.emplace_back(warning::kWorking);
  }
  return result;
}

}  // namespace todoke::orders
