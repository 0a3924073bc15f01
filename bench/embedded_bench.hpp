// A benchmark on an embedded Postgres of its own (fsync on), in a temporary folder.
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "embedded/postgres.hpp"
#include "pg/connection.hpp"
#include "pg/migrations.hpp"

namespace todoke::bench {

// For what is not measured by itself: only something that hangs takes so long.
constexpr std::chrono::seconds kStepMax(600);

inline Deadline soon() {
  return Deadline::after(kStepMax);
}

// At once, so that a reader follows a run that takes minutes.
inline void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

inline double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// A connection to the server's database, with the tables of migrations/.
inline Task<std::unique_ptr<pg::Connection>> connect_migrated(const embedded::Postgres& server) {
  pg::ConnectOptions options;
  options.url = server.connection_string();
  auto connection = co_await pg::Connection::connect(options, soon());
  co_await pg::migrate(*connection, pg::embedded_migrations(), "bench");
  co_return connection;
}

inline Task<void> start_and_measure(embedded::Postgres& server, Task<void> (*measure)(embedded::Postgres&)) {
  co_await server.start();
  std::exception_ptr failure;
  try {
    co_await measure(server);
  } catch (...) {
    failure = std::current_exception();
  }
  server.stop();
  co_await server.run();
  if (failure) std::rethrow_exception(failure);
}

// The exit code of the program.
inline int run_on_embedded(Task<void> (*measure)(embedded::Postgres&)) {
  log::configure(log::Level::error, log::Format::human);
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("todoke-bench-{}", getpid());
  std::exception_ptr failure;
  {
    asio::io_context io;
    embedded::Options config;
    config.data_dir = folder.string();
    embedded::Postgres server(io.get_executor(), config);
    asio::co_spawn(io, start_and_measure(server, measure),
                   [&](std::exception_ptr error) { failure = std::move(error); });
    io.run();
    wait_for_blocking_calls();
  }
  std::filesystem::remove_all(folder);
  if (failure) std::fputs((describe(failure) + "\n").c_str(), stderr);
  return failure ? 1 : 0;
}

}  // namespace todoke::bench
