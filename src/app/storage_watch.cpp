#include "app/storage_watch.hpp"

#include <filesystem>
#include <limits>
#include <sys/stat.h>
#include <utility>

#include <fmt/format.h>

#include "app/statements_sql.hpp"
#include "base/attempt.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kLookAtDiskEvery(1);
constexpr std::chrono::seconds kTryEvery(5);
constexpr std::chrono::seconds kTryMax(10);

constexpr int kBytesInMebibyteBits = 20;

std::uint64_t mebibytes(std::uint64_t bytes) {
  return bytes >> kBytesInMebibyteBits;
}

bool is_on_another_disk(const std::string& a, const std::string& b) {
  struct stat first{};
  struct stat second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev != second.st_dev;
}

}  // namespace

std::vector<WatchedFolder> folders_to_watch(const std::string& data_dir) {
  const auto wal = data_dir + "/postgres/pg_wal";
  std::vector<WatchedFolder> folders{{"data", data_dir}};
  if (is_on_another_disk(data_dir + "/postgres", wal)) folders.push_back({"wal", wal});
  return folders;
}

StorageWatch::StorageWatch(const Executor& executor, StorageWatchOptions options, const Clock& clock,
                           pg::Storage& storage, pg::Pool& pool, HealthBoard& health,
                           metrics::Registry& registry)
    : PeriodicService(
          executor, {.name = "storage watch", .failed = "free space was not read", .every = kLookAtDiskEvery},
          registry),
      options_(std::move(options)),
      clock_(clock),
      storage_(storage),
      pool_(pool),
      health_(health),
      free_(registry.gauges("todoke_storage_free_bytes", "Free on the disk of the embedded Postgres.",
                            {"folder"})),
      least_(registry.gauge("todoke_storage_free_bytes_min",
                            "Below this nothing is taken in (capacity.min_free_bytes).")),
      full_(registry.gauge("todoke_storage_full", "1: the database has no room; nothing is taken in.")) {}

Task<void> StorageWatch::start() {
  co_await round(RoundCause::time);
}

Task<void> StorageWatch::run() {
  co_await PeriodicService::run();
  health_.forget("storage");
}

Task<void> StorageWatch::round(RoundCause /*cause*/) {
  judge(co_await measure_free());
  const bool is_new = storage_.was_refused() && !was_refused_;
  was_refused_ = storage_.was_refused();
  if (!was_refused_) co_return;
  if (is_new) {
    log::error("storage",
               "the database's disk is full (SQLSTATE 53100): nothing is taken in until it has room");
    try_at_ = clock_.steady() + kTryEvery;
  }
  if (clock_.steady() < try_at_) co_return;
  co_await try_to_write();
  try_at_ = clock_.steady() + kTryEvery;
}

// Asked on a thread of its own: a disk of the network may hang.
Task<std::vector<StorageWatch::Look>> StorageWatch::measure_free() const {
  std::vector<Look> looks;
  for (const auto& folder : options_.folders) {
    Look seen{folder.name, folder.path, 0};
    co_await run_blocking([this, &seen] { seen.free_bytes = options_.free_bytes(seen.path); });
    looks.push_back(std::move(seen));
  }
  co_return looks;
}

void StorageWatch::judge(const std::vector<Look>& looks) {
  const auto least = options_.free_bytes_min;
  least_.set(static_cast<double>(least));
  const bool was_low = storage_.is_low();
  bool is_low = false;
  std::string shortest;
  auto free = std::numeric_limits<std::uint64_t>::max();
  for (const auto& look : looks) {
    free_.with({look.name}).set(static_cast<double>(look.free_bytes));
    is_low = is_low || pg::next_low(was_low, look.free_bytes, least);
    if (look.free_bytes >= free) continue;
    free = look.free_bytes;
    shortest = fmt::format("{} MiB free under {}", mebibytes(free), look.path);
  }
  storage_.set_low(is_low);
  report(shortest);
  if (is_low == was_low) return;
  if (is_low) {
    log::error(
        "storage",
        fmt::format("storage full: {}, less than capacity.min_free_bytes: nothing is taken in until {} MiB "
                    "are free",
                    shortest, mebibytes(pg::free_bytes_to_resume(least))));
  } else {
    log::warning("storage", fmt::format("there is room again, {}: events and orders are taken in", shortest));
  }
}

void StorageWatch::report(const std::string& shortest) {
  full_.set(storage_.is_full() ? 1 : 0);
  std::string problem;
  if (storage_.is_low()) {
    problem = fmt::format("storage full: {}; nothing is taken in until {} MiB are free", shortest,
                          mebibytes(pg::free_bytes_to_resume(options_.free_bytes_min)));
  } else if (storage_.was_refused()) {
    problem =
        "storage full: the database refuses to write (SQLSTATE 53100); nothing is taken in until it has room";
  }
  const auto state = problem.empty() ? HealthState::up : HealthState::degraded;
  health_.report("storage", false, {state, problem.empty() ? shortest : problem});
}

Task<void> StorageWatch::try_to_write() {
  const auto tried = co_await attempt(write_and_forget());
  // Only the server's word that it has no room counts; a role that may make no temporary table finds out by
  // the next commit.
  if (!tried && (pg::found_disk_full(tried.error()) || !is_a<pg::Error>(tried.error()))) co_return;
  storage_.set_refused(false);
  was_refused_ = false;
  log::warning("storage", "the database's disk has room again: events and orders are taken in");
}

Task<void> StorageWatch::write_and_forget() {
  const auto deadline = Deadline::after(kTryMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Batch batch;
  batch.add(sql::kMakeProbeTable);
  batch.add(sql::kFillProbeTable);
  co_await lease->run(std::move(batch), deadline);
}

}  // namespace todoke::app
