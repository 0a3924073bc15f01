#include "server.hpp"

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "link.hpp"
#include "pg/connection.hpp"
#include "pg/migrations.hpp"
#include "watch.hpp"

namespace todoke::test {
namespace {

constexpr std::chrono::seconds kSetUpMax(60);
// The one that the server makes for itself is the template of the others.
constexpr const char* kTemplate = "todoke";
constexpr const char* kAdmin = "postgres";

}  // namespace

SoakServer::SoakServer()
    : postgres_(std::make_shared<embedded::Postgres>(loop_.executor(), config())),
      supervisor_(loop_.executor(), clock_, board_, registry_) {
  // The server drops to a user of its own, who must get in.
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0711));
  supervisor_.add(postgres_);
  loop_.run(supervisor_.start());
  run_task([this] { return migrate(url(kTemplate)); });
  Link link(url(kTemplate));
  link.rows(kWatch);
  link.rows("ALTER SYSTEM SET fsync = off");
  link.rows("SELECT pg_reload_conf()");
}

SoakServer::~SoakServer() {
  loop_.run(supervisor_.stop());
}

embedded::Options SoakServer::config() const {
  embedded::Options made;
  made.data_dir = folder_.path() / "data";
  return made;
}

Task<void> SoakServer::migrate(std::string url) {
  pg::ConnectOptions options;
  options.url = std::move(url);
  const auto connection = co_await pg::Connection::connect(options, Deadline::after(kSetUpMax));
  co_await pg::migrate(*connection, pg::embedded_migrations());
}

// Bounded: a server that dies at the wrong moment leaves nobody waiting for ever.
std::string SoakServer::url(const std::string& database) const {
  return fmt::format(
      "host={} user=todoke dbname={} connect_timeout=5 options='-c client_min_messages=error -c "
      "statement_timeout=20s'",
      socket_folder(), database);
}

void SoakServer::make_database(const std::string& name) const {
  Link link(url(kAdmin));
  link.rows(fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", name));
  link.rows(fmt::format("CREATE DATABASE {} TEMPLATE {}", name, kTemplate));
}

void SoakServer::drop_database(const std::string& name) const {
  Link(url(kAdmin)).rows(fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", name));
}

void SoakServer::kill_postmaster() {
  std::optional<pid_t> victim;
  loop_.call([&] { victim = postgres_->pid(); });
  if (victim) ::kill(*victim, SIGKILL);
}

}  // namespace todoke::test
