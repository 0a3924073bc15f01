// The event loops of a process, each with a thread of its own, which has its name (`top -H`), and who lives
// on which:
//
//   main         the supervisor, the database and its listener, orders, the internal listener: what must go
//                on whatever the public does
//   relay        the writer, live delivery, topics
//   consumers    the node's own consumers of the log, such as the search index; gives way to the others when
//                there is no processor for all
//   gossip       what other nodes send is checked here, signatures too, and what goes to them is paced
//   reads        what comes from the database for a REQ or COUNT is made into events and matched here, last
//                of all
//   connections  the public ones, each on one of these loops for its life
//   door         takes new public connections and hands on those that say something; gives way to the others,
//                so that the clients it serves notice little of a flood
#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/async.hpp"
#include "base/priority.hpp"

namespace todoke::app {

class Runtime {
 public:
  // Without loops for connections there is the main one alone: for commands.
  explicit Runtime(std::size_t connection_loops = 0);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] Executor main() { return main_.get_executor(); }
  // These only where there are loops for connections.
  [[nodiscard]] Executor relay() { return relay_->get_executor(); }
  [[nodiscard]] Executor consumers() { return consumers_->get_executor(); }
  [[nodiscard]] Executor gossip() { return gossip_->get_executor(); }
  [[nodiscard]] Executor reads() { return reads_->get_executor(); }
  [[nodiscard]] std::vector<Executor> connections();
  [[nodiscard]] Executor door() { return door_->get_executor(); }

  // Runs `work` on the main loop until it has ended; throws what it threw. Called once, on the main thread.
  // No loop runs any more when it returns.
  void run(Task<void> work);

 private:
  void run_beside(asio::io_context& loop, const char* name, Priority priority);
  void end_threads();

  asio::io_context main_{1};
  std::unique_ptr<asio::io_context> relay_;
  std::unique_ptr<asio::io_context> consumers_;
  std::unique_ptr<asio::io_context> gossip_;
  std::unique_ptr<asio::io_context> reads_;
  std::vector<std::unique_ptr<asio::io_context>> connections_;
  std::unique_ptr<asio::io_context> door_;
  std::vector<std::thread> threads_;
};

}  // namespace todoke::app
