// Watches the room on the database's disk, and says so to everybody who takes something in (pg/storage.hpp).
//
//   every second   asks how much is free under each folder; below `free_bytes_min` the disk is low, until a
//                  quarter more is free
//   53100          somebody's commit was refused: every 5 s a try to write 8 MiB, which are thrown away,
//                  until the server takes it
//
// Between two looks a node writes what its disk takes in a second; `free_bytes_min` has to be more than that.
// Seen as a metric, the health line `storage` and a line of the log at each change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/periodic.hpp"
#include "pg/pool.hpp"
#include "pg/storage.hpp"

namespace todoke::app {

struct WatchedFolder {
  std::string name;  // as the metric has it: data, wal
  std::string path;
};

struct StorageWatchOptions {
  std::vector<WatchedFolder> folders;  // none where the database is not this node's own
  std::uint64_t free_bytes_min = 0;
  // Throws where the folder can't be asked; it may block.
  std::function<std::uint64_t(const std::string&)> free_bytes;
};

// Of the embedded cluster in `data_dir`: the folder, and that of the WAL where it lies on another disk.
std::vector<WatchedFolder> folders_to_watch(const std::string& data_dir);

class StorageWatch final : public PeriodicService {
 public:
  StorageWatch(const Executor& executor, StorageWatchOptions options, const Clock& clock,
               pg::Storage& storage, pg::Pool& pool, HealthBoard& health, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

  // On the executor; holds from the next look on.
  void set_free_bytes_min(std::uint64_t bytes) { options_.free_bytes_min = bytes; }

  // Also for tests.
  Task<void> round(RoundCause cause) override;

 private:
  struct Look {
    std::string name;
    std::string path;
    std::uint64_t free_bytes = 0;
  };
  Task<std::vector<Look>> measure_free() const;
  void judge(const std::vector<Look>& looks);
  Task<void> try_to_write();
  Task<void> write_and_forget();
  void report(const std::string& shortest);

  StorageWatchOptions options_;
  const Clock& clock_;
  pg::Storage& storage_;
  pg::Pool& pool_;
  HealthBoard& health_;
  metrics::Family<metrics::Gauge>& free_;  // todoke_storage_free_bytes{folder}
  metrics::Gauge& least_;                  // todoke_storage_free_bytes_min
  metrics::Gauge& full_;                   // todoke_storage_full
  bool was_refused_ = false;               // at the last look
  SteadyTime try_at_{};
};

}  // namespace todoke::app
