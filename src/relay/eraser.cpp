#include "relay/eraser.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/tag_keys.hpp"
#include "relay/eraser_sql.hpp"
#include "relay/event_rows.hpp"
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
// Requests of a pass; the others wait for the next one.
constexpr std::int64_t kRequestsMax = 10'000;

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

Task<Eraser::Pass> Eraser::look(pg::Connection& connection) {
  const auto rows = co_await connection.query(sql::kVanishPass, {}, Deadline::after(kStepMax));
  const auto row = rows.one();
  Pass pass{row.get<std::int64_t>("number"),       row.get<bool>("under_way"),
            row.get<std::int64_t>("next_block"),   row.get<std::int64_t>("events_end"),
            row.get<std::int64_t>("versions_end"), row.get<std::int64_t>("waiting")};
  metrics_.vanish_waiting.set(static_cast<double>(pass.waiting));
  co_return pass;
}

Task<void> Eraser::round(RoundCause /*cause*/) {
  Pass pass{};
  {
    const auto lease = co_await pool_.acquire(Deadline::after(kStepMax));
    pass = co_await look(*lease);
  }
  if (!pass.under_way && pass.waiting == 0) co_return;
  connection_ = co_await pg::Connection::connect(connect_, Deadline::after(kStepMax));
  if (!pass.under_way) co_await begin();
  co_await run_pass();
  connection_.reset();
}

Task<void> Eraser::begin() {
  erased_ = 0;
  pg::Batch work;
  // Whoever moves rows has ended, or sees the claim.
  work.add(sql::kLockLog, {listener_.head().value});
  work.add(sql::kHoldPass);
  work.add(sql::kClaimRequests, {kRequestsMax});
  work.add(sql::kBeginPass);
  co_await connection_->run(std::move(work), Deadline::after(kStepMax));
}

Task<void> Eraser::run_pass() {
  while (!stop_asked()) {
    const auto pass = co_await look(*connection_);
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
  const auto found = co_await connection_->query(sql::kFindVanished,
                                                 {pass.number, place_of(pass.next_block), place_of(next)},
                                                 Deadline::after(kStepMax));
  if (!found.empty()) co_await erase(found);
  co_return next;
}

Task<void> Eraser::erase(const pg::Result& found) {
  for (std::size_t first = 0; first < found.size(); first += kErasedMax) {
    EraseKeys keys;
    const auto last = std::min(first + kErasedMax, found.size());
    for (auto i = first; i < last; ++i) {
      const auto row = found[i];
      keys.ids.push_back(row.get<std::string>("event_id"));
      keys.created.push_back(row.get<std::int64_t>("created_at"));
      keys.times.push_back(row.get<SystemTime>("ingested_at"));
      keys.lifetimes.push_back(row.get<std::string>("lifetime"));
      auto& tags = keys.tags.emplace_back();
      if (const auto raw = row.get<std::optional<pg::ByteView>>("raw")) {
        const std::string_view json(reinterpret_cast<const char*>(raw->data()), raw->size());
        if (const auto event = nostr::parse_event(json, no_limits())) tags = nostr::tag_keys_of(*event);
      }
    }
    co_await connection_->query(sql::kForgetDeadLetters, {keys.ids}, Deadline::after(kStepMax));
    const auto log = co_await erase_events(*connection_, keys, listener_.head(), Deadline::after(kStepMax));
    erased_ += log.gone.size();
    metrics_.vanish_erased.add(log.gone.size());
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
  co_await connection_->run(std::move(work), Deadline::after(kStepMax));
  co_return pass.events_end + to;
}

Task<void> Eraser::end(std::int64_t number) {
  pg::Batch work;
  work.add(sql::kLockLog, {listener_.head().value});
  work.add(sql::kHoldPass);
  work.add(sql::kSettleRequests, {number});
  work.add(sql::kEndPass, {number});
  co_await connection_->run(std::move(work), Deadline::after(kStepMax));
  log::info("eraser", "those who asked to vanish are forgotten", {{"events", erased_}});
}

}  // namespace todoke::relay
