// Eight writers (the relay, plain SQL, straight into a partition) and four consumers (three of ours in
// processes of their own, one of them twice; and docs/examples/follow.sql by psql) on one log, for a while.
//
// TODOKE_LOG_SECONDS says for how long, TODOKE_LOG_SEED repeats the choices of a run; the seed is printed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kept.hpp"
#include "load.hpp"

namespace todoke::test {

class Soak {
 public:
  // Prepares the database: the log stands just before the end of a partition.
  explicit Soak(DatabasePtr database);

  // Somebody who does harm, again and again, until the writers have ended.
  using Harm = std::function<void(Random&)>;
  void run(const Harm& harm = {});
  // After run().
  void expect_nothing_was_skipped_or_repeated();

  // Harm: cuts one connection of the database, or all.
  void cut_connections(Random& random);
  // Kills a consumer or stops it for a while, at times for longer than its lease.
  void hurt_consumer(Random& random);

 private:
  [[nodiscard]] Random random(std::uint64_t part) const { return Random(seed_ + part); }
  void write(const std::string& relay_url, const Harm& harm);
  void await_end();
  std::vector<std::int64_t> seqs(const std::string& statement);

  DatabasePtr database_;
  std::uint64_t seed_;
  std::uint64_t seconds_;
  Link link_;
  std::vector<std::unique_ptr<Kept>> consumers_;
};

}  // namespace todoke::test
