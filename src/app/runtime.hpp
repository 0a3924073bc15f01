// The event loops of a process: one on the main thread for services and the database, and further ones with a
// thread each for connections.
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/async.hpp"

namespace todoke::app {

class Runtime {
 public:
  // One loop alone means that the main thread carries the connections too.
  explicit Runtime(std::size_t loops);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] Executor main();
  // Where connections live.
  [[nodiscard]] std::vector<Executor> connections();

  // Runs `work` on the main loop until it has ended; throws what it threw. Called once, on the main thread.
  void run(Task<void> work);

 private:
  asio::io_context main_{1};
  std::vector<std::unique_ptr<asio::io_context>> others_;
  std::vector<std::thread> threads_;
};

}  // namespace todoke::app
