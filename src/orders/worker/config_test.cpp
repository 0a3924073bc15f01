#include "orders/worker/config.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "queue/retry_table.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;
using Environment = std::vector<std::string>;
using Delays = std::vector<std::chrono::seconds>;

const Schema& schema() {
  static const Schema instance = [] {
    Schema s;
    s.add(worker_config_keys());
    return s;
  }();
  return instance;
}

// The settings that the worker protocol names, in its order.
std::string protocol_settings(const Config& config) {
  return fmt::format(
      "enabled {}, concurrency {}, batch {}, poll {} ms, lease {} ms, attempts {}, backoff {}, timeout {} ms",
      config.get(keys::kEnabled), config.get(keys::kConcurrency), config.get(keys::kBatch),
      config.get(keys::kPollInterval).count(), config.get(keys::kLease).count(),
      config.get(keys::kMaxAttempts), fmt::join(config.get(keys::kBackoff), " "),
      config.get(keys::kBrokerTimeout).count());
}

// None of the defaults.
constexpr const char* kOthers =
    "enabled true, concurrency 7, batch 9, poll 250 ms, lease 90000 ms, attempts 3, backoff 1 2, timeout "
    "1500 ms";

Config from_environment(const Environment& environment) {
  Config config(schema());
  config.load_environment(environment);
  return config;
}

Config from_file(std::string_view toml) {
  Config config(schema());
  config.load_toml(toml, "t.toml");
  return config;
}

Delays backoff(const Config& config) {
  return queue::RetryTable::parse(config.get(keys::kBackoff)).value().delays();
}

TEST(WorkerConfig, TheDefaultsAreThoseOfTheProtocol) {
  EXPECT_EQ(protocol_settings(Config(schema())),
            "enabled false, concurrency 4, batch 32, poll 500 ms, lease 120000 ms, attempts 6,"
            " backoff 5 10 20 40 80 160, timeout 2500 ms");
}

TEST(WorkerConfig, EveryNameOfTheProtocolWorksInTheEnvironment) {
  const Environment names{"OUTBOX_ENABLED=true",      "OUTBOX_CONCURRENCY=7",
                          "OUTBOX_BATCH=9",           "OUTBOX_POLL_INTERVAL_SEC=0.25",
                          "OUTBOX_LOCK_LEASE_SEC=90", "OUTBOX_MAX_ATTEMPTS=3",
                          "OUTBOX_BACKOFF_SEC=1,2",   "BROKER_TIMEOUT_MS=1500"};
  EXPECT_EQ(protocol_settings(from_environment(names)), kOthers);
  Environment own;
  for (const auto& name : names) own.push_back("TODOKE_" + name);
  EXPECT_EQ(protocol_settings(from_environment(own)), kOthers);
}

TEST(WorkerConfig, EveryNameOfTheProtocolIsAKeyOfTheFile) {
  EXPECT_EQ(protocol_settings(from_file("[outbox]\n"
                                        "enabled = true\n"
                                        "concurrency = 7\n"
                                        "batch = 9\n"
                                        "poll_interval_sec = 0.25\n"
                                        "lock_lease_sec = 90\n"
                                        "max_attempts = 3\n"
                                        "backoff_sec = [1, 2]\n"
                                        "[broker]\n"
                                        "timeout_ms = 1500\n")),
            kOthers);
}

TEST(WorkerConfig, TheBackoffCanBeWrittenInSeveralWays) {
  const Delays wanted{5s, 10s};
  for (const auto* text : {"[5,10]", "5,10", "[5, 10]", "5, 10"}) {
    EXPECT_EQ(backoff(from_environment({std::string("OUTBOX_BACKOFF_SEC=") + text})), wanted) << text;
  }
  for (const auto* text : {"[5, 10]", "['5', '10']"}) {
    EXPECT_EQ(backoff(from_file(std::string("[outbox]\nbackoff_sec = ") + text)), wanted) << text;
  }
  EXPECT_EQ(backoff(Config(schema())), (Delays{5s, 10s, 20s, 40s, 80s, 160s}));
}

}  // namespace
}  // namespace todoke::orders
