#include "relay/eraser.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "relay/eraser_sql.hpp"
#include "relay/store_sql.hpp"

namespace todoke::relay {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookEvery = 1s;
constexpr std::chrono::milliseconds kStepMax = 30s;
// Half a MiB of each partition: some hundred rows, some milliseconds.
constexpr std::int64_t kBlocks = 64;
// Bounds how long a commit holds the log's lock.
constexpr std::size_t kErasedMax = 100;
// Requests of a pass, and blocks; the others wait for the next one.
constexpr std::int64_t kRequestsMax = 10'000;
// The rest after a pass: that of a small node, and of one whose pass took so long that most of it was
// standstill.
constexpr double kRestMinSeconds = 5;
constexpr double kRestMaxSeconds = 3'600;

pg::ConnectOptions eraser_options(pg::ConnectOptions options) {
  options = writer_options(std::move(options));
  options.application_name = "todoke eraser";
  return options;
}

std::string place_of(std::int64_t block) {
  return fmt::format("({},0)", block);
}

}  // namespace

Eraser::Eraser(const Executor& executor, pg::Pool& pool, pg::ConnectOptions connect, CommitListener& listener,
               const Clock& clock, RelayMetrics& metrics)
    : PeriodicService(
          executor, {.name = "eraser", .failed = "events were not erased, trying again", .every = kLookEvery},
          metrics.registry),
      pool_(pool),
      connect_(eraser_options(std::move(connect))),
      listener_(listener),
      clock_(clock),
      metrics_(metrics) {}

Task<Eraser::Pass> Eraser::read_pass(pg::Connection& connection) {
  const auto rows = co_await connection.query(sql::kErasePass, {}, Deadline::after(kStepMax));
  const auto row = rows.one();
  const auto requests = row.get<std::int64_t>("requests");
  metrics_.vanish_waiting.set(static_cast<double>(requests));
  const bool is_due = row.get<bool>("blocks_wait") || (requests > 0 && row.get<bool>("is_rested"));
  Pass pass{row.get<std::int64_t>("number"),
            row.get<bool>("under_way"),
            row.get<std::int64_t>("next_block"),
            row.get<std::int64_t>("events_end"),
            row.get<std::int64_t>("versions_end"),
            is_due,
            row.get<bool>("has_blocks")};
  co_return pass;
}

Task<void> Eraser::round(RoundCause /*cause*/) {
  Pass pass{};
  {
    const auto lease = co_await pool_.acquire(Deadline::after(kStepMax));
    pass = co_await read_pass(*lease);
  }
  if (!pass.under_way && !pass.is_due) co_return;
  connection_ = co_await pg::Connection::connect(connect_, Deadline::after(kStepMax));
  if (!pass.under_way) co_await begin();
  co_await run_pass();
  connection_.reset();
}

Task<void> Eraser::run_locked(pg::Batch work) {
  const auto results = co_await connection_->run(std::move(work), Deadline::after(kStepMax));
  listener_.locked(read_lock(results.front()));
}

Task<void> Eraser::begin() {
  erased_ = 0;
  pg::Batch work;
  // Every transaction that moved rows has ended, or sees the claim.
  work.add(sql::kLockLog, {listener_.head().value});
  work.add(sql::kHoldPass);
  work.add(sql::kClaimRequests, {kRequestsMax});
  work.add(sql::kClaimBlocks, {kRequestsMax});
  work.add(sql::kBeginPass);
  co_await run_locked(std::move(work));
}

Task<void> Eraser::run_pass() {
  while (!stop_asked()) {
    const auto pass = co_await read_pass(*connection_);
    if (!pass.under_way) co_return;
    if (pass.next_block >= pass.events_end + pass.versions_end) {
      co_await end(pass.number);
      co_return;
    }
    const auto began = clock_.steady();
    auto next = pass.next_block;
    if (pass.next_block < pass.events_end) {
      next = co_await erase_blocks(pass);
    } else {
      next = co_await forget_blocks(pass);
    }
    co_await connection_->query(sql::kAdvancePass, {pass.number, pass.next_block, next},
                                Deadline::after(kStepMax));
    co_await pause(clock_.steady() - began);
  }
}

Task<std::int64_t> Eraser::erase_blocks(const Pass& pass) {
  const auto next = std::min(pass.next_block + kBlocks, pass.events_end);
  pg::Params params(pass.number, place_of(pass.next_block), place_of(next), pass.has_blocks);
  const auto found =
      co_await connection_->query(sql::kFindDoomed, std::move(params), Deadline::after(kStepMax));
  co_await erase(found, "dsar", metrics_.vanish_erased);
  co_await erase(found, "operator", metrics_.blocks_erased);
  co_return next;
}

Task<void> Eraser::erase(const pg::Result& found, std::string reason, metrics::Counter& counter) {
  std::size_t i = 0;
  while (i < found.size()) {
    EraseKeys keys;
    for (; i < found.size() && keys.ids.size() < kErasedMax; ++i) {
      const auto row = found[i];
      if (row.get<std::string_view>("reason") != reason) continue;
      keys.ids.push_back(row.get<std::string>("event_id"));
      keys.times.push_back(row.get<SystemTime>("ingested_at"));
      keys.lifetimes.push_back(row.get<std::string>("lifetime"));
    }
    if (keys.ids.empty()) co_return;
    const auto log =
        co_await erase_events(*connection_, keys, reason, listener_.head(), Deadline::after(kStepMax));
    listener_.locked(log);
    erased_ += log.gone.size();
    counter.add(log.gone.size());
    listener_.lost_effect(log.gone);
    listener_.appended(log, {});
  }
}

Task<std::int64_t> Eraser::forget_blocks(const Pass& pass) {
  const auto from = pass.next_block - pass.events_end;
  const auto to = std::min(from + kBlocks, pass.versions_end);
  pg::Batch work;
  work.add(sql::kLockLog, {listener_.head().value});
  work.add(sql::kForgetVersions, {pass.number, place_of(from), place_of(to)});
  co_await run_locked(std::move(work));
  co_return pass.events_end + to;
}

Task<void> Eraser::end(std::int64_t number) {
  pg::Batch work;
  work.add(sql::kLockLog, {listener_.head().value});
  work.add(sql::kHoldPass);
  work.add(sql::kSettleRequests, {number});
  work.add(sql::kSettleBlocks, {number});
  work.add(sql::kEndPass, {number, kRestMinSeconds, kRestMaxSeconds});
  co_await run_locked(std::move(work));
  log::info("eraser", "those who asked to vanish, and what was to be erased, are forgotten",
            {{"events", erased_}});
}

}  // namespace todoke::relay
