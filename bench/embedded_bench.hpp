// A benchmark on an embedded Postgres of its own (fsync on), in a temporary folder.
#pragma once

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "pg/embedded.hpp"

namespace todoke::bench {

inline Task<void> start_and_measure(pg::EmbeddedPostgres& server,
                                    Task<void> (*measure)(pg::EmbeddedPostgres&)) {
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
inline int run_on_embedded(Task<void> (*measure)(pg::EmbeddedPostgres&)) {
  log::configure(log::Level::error, log::Format::human);
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("todoke-bench-{}", getpid());
  std::exception_ptr failure;
  {
    asio::io_context io;
    pg::EmbeddedConfig config;
    config.data_dir = folder.string();
    pg::EmbeddedPostgres server(io.get_executor(), config);
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
