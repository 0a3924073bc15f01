// What `todoke consumers` prints and does, but for `add`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/command.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

Task<void> print_consumers(pg::Connection& connection);
Task<void> show_consumer(pg::Connection& connection, std::string name);
Task<void> pause_consumer(pg::Connection& connection, std::string name, bool paused);
// By --from-seq, or --from-time (2026-01-31T12:00:00Z or unix seconds). Waits, with progress, until the
// consumer has caught up, unless `wait` is false.
Task<void> replay_consumer(pg::Connection& connection, std::string name, const Arguments& arguments);
Task<void> rebuild_consumer(pg::Connection& connection, std::string name, bool wait);
// `action`: list, retry or drop; of one row (seq) or all.
Task<void> dead_letters(pg::Connection& connection, std::string name, std::string action,
                        std::optional<std::int64_t> seq);

// Throws UsageError for what is no seq.
std::int64_t parse_seq(const std::string& text);

}  // namespace todoke::app
