// A private Postgres in todoke's data folder, for when no database is configured: made at the first start,
// watched, and stopped with todoke.
//
//   find the programs -> end what an earlier run left -> initdb (once) -> postmaster -> ready -> roles and
//   the database todoke
//
// Promises: durable (checksums, fsync), reachable through a private Unix socket only unless log.listen opens
// TCP (tcp.hpp), never runs as root. When todoke dies Postgres stops by itself (child.hpp); when Postgres
// dies, run() throws and start() brings it back with all that was committed; without room on its disk it
// waits for room first, and says so once. A backend that crashes is Postgres' own affair: it recovers without
// our help. Stopping takes at most 5 s: a fast shutdown, after 4 s an immediate one (the next start replays
// the log). Costs: a thread that reads its log, and the memory of settings.hpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/service.hpp"
#include "embedded/binaries.hpp"
#include "embedded/config.hpp"
#include "embedded/folder.hpp"
#include "embedded/tcp.hpp"

namespace todoke::embedded {

class Child;
class OutputPipe;

class Postgres final : public Service {
 public:
  // `executor` is the one that start() and run() are called on.
  Postgres(const Executor& executor, Options config);
  ~Postgres() override;

  [[nodiscard]] std::string_view name() const override { return "postgres"; }
  [[nodiscard]] Expected<void> validate() const override;
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

  // For libpq, as the owner of the database; valid before start() too.
  [[nodiscard]] std::string connection_string() const { return url_of(layout_); }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  // Reads the files of the certificate of TCP now, while they can be read. Otherwise the first start() does.
  // Throws UserError.
  void read_certificate();
  // Reads the certificate of TCP again, for connections that come. Refused, and the old one stays, when the
  // files are not right. Small files; blocks for as long as they take.
  Expected<void> reload_certificate();
  // The postmaster, while there is one.
  [[nodiscard]] std::optional<pid_t> pid() const;

 private:
  struct Life;
  struct ToolResult;

  Task<void> bring_up();
  Task<PostgresBinaries> find_binaries(std::optional<int> cluster_major);
  Task<void> wait_for_room();
  Task<std::uint64_t> free_bytes();
  Task<void> end_leftovers();
  Task<void> make_cluster(PostgresBinaries binaries, User user);
  Task<void> launch(PostgresBinaries binaries, User user);
  Task<void> wait_until_ready();
  Task<void> make_database();
  Task<void> shut_down();
  Task<ToolResult> run_tool(Program program, std::chrono::milliseconds limit);
  void throw_if_stopped() const;
  // Throws UserError for a configuration that validate() refuses.
  [[nodiscard]] std::optional<Tcp> tcp() const;
  [[nodiscard]] int port() const;

  Options config_;
  Layout layout_;
  Signal changed_;  // stop was asked for, or a child ended: look again
  bool stop_asked_ = false;
  std::optional<TlsFiles> certificate_;
  std::unique_ptr<DataFolderLock> lock_;  // from the first start() until the end of run()
  std::shared_ptr<Life> life_;
  std::unique_ptr<OutputPipe> output_;
  std::unique_ptr<Child> process_;
};

}  // namespace todoke::embedded
