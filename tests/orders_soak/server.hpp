// A Postgres server of the test's own that comes back when it is killed, with all that was committed; and a
// database for each run, with the schema of migrations/ and what watches it (watch.hpp). It does not sync:
// processes die here, the machine does not, and a run would mostly wait for the disk.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "embedded/postgres.hpp"
#include "harness/http_rig.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {

class SoakServer {
 public:
  SoakServer();
  ~SoakServer();
  SoakServer(const SoakServer&) = delete;
  SoakServer& operator=(const SoakServer&) = delete;

  [[nodiscard]] std::string socket_folder() const { return (folder_.path() / "data" / "run").string(); }
  [[nodiscard]] std::string url(const std::string& database) const;
  void make_database(const std::string& name) const;
  void drop_database(const std::string& name) const;
  // kill -9; it starts again by itself and recovers.
  void kill_postmaster();

 private:
  [[nodiscard]] embedded::Options config() const;
  static Task<void> migrate(std::string url);

  TempFolder folder_;
  log::Capture quiet_{[](std::string_view) {}};  // a server that is killed has much to say
  SystemClock clock_;
  HealthBoard board_;
  metrics::Registry registry_;
  net::test::Loop loop_;
  std::shared_ptr<embedded::Postgres> postgres_;
  Supervisor supervisor_;
};

}  // namespace todoke::test
