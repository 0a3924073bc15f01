// What the tests of the embedded Postgres share: a folder, a service that runs, and SQL.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>

#include <boost/asio/io_context.hpp>

#include "embedded/postgres.hpp"
#include "harness/await.hpp"

namespace todoke::embedded::tests {

using test::wait_until;

// A folder of its own under /tmp, removed at the end with the processes that still work in it.
class TempFolder {
 public:
  // 0711: the user that root drops to can pass. 0700: it can't.
  explicit TempFolder(mode_t mode = 0711);
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] std::string data_dir() const { return path_ + "/data"; }
  [[nodiscard]] std::string cluster() const { return data_dir() + "/postgres"; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The service on a context that turns only while the test waits for it.
class Node {
 public:
  explicit Node(const std::string& data_dir) : Node(Options{.data_dir = data_dir, .bin_dir = {}}) {}
  explicit Node(Options config);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void start();  // throws what start() throws
  void begin_start();
  void begin_run();
  // Waits for the end of what began; gives what it threw.
  std::exception_ptr end();
  void stop() { service_->stop(); }
  // start(), and run() in the background.
  void serve();
  // stop(), and run() must return without an error.
  void stop_well();

  // Turns the context until `condition` holds.
  void until(const std::function<bool()>& condition);
  [[nodiscard]] bool running() const { return running_; }
  Postgres& service() { return *service_; }

  // The first row; empty when there is none. Throws what Postgres says.
  std::string sql(const std::string& statement);

 private:
  void begin(Task<void> work);

  boost::asio::io_context& context_;
  std::unique_ptr<Postgres> service_;
  bool running_ = false;
  std::exception_ptr error_;
};

std::string run_sql(const std::string& connection_string, const std::string& statement);

// Whether a folder of a half-made cluster stands in `data_dir`.
bool has_half_made(const std::string& data_dir);

void write_file(const std::string& path, const std::string& content);

}  // namespace todoke::embedded::tests
