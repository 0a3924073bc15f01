// A node that gives up root has no home of root's: libpq looks there for a client certificate, and would give
// TLS up.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sql_session.hpp"
#include "log/rig.hpp"

namespace todoke::test {
namespace {

void write_above(const std::filesystem::path& path, const std::string& line) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::ofstream(path) << line << "\n" << text.str();
}

TEST(HomeOfRoot, DoesNotKeepANodeFromADatabaseBehindTls) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has something to give up";
  LogNode database(Tcp::tls);
  write_above(database.folder().path() / "postgres/pg_hba.conf",
              "hostssl todoke todoke,todoke_node 127.0.0.1/32 trust");
  EXPECT_EQ(database.sql("SELECT pg_reload_conf()"), "t");
  const TempFolder home;
  std::filesystem::permissions(home.path(), std::filesystem::perms::owner_all);
  const TempFolder folder;
  TodokeRun node(
      "none", folder.path(), {},
      {fmt::format("DATABASE_URL=host=127.0.0.1 port={} user=todoke_node dbname=todoke sslmode=require",
                   database.port()),
       "HOME=" + home.path().string()});
  node.wait_ready();
  EXPECT_THAT(http_get("http://" + node.internal_address() + "/healthz").body,
              testing::HasSubstr(R"("name":"database","state":"up")"));
}

}  // namespace
}  // namespace todoke::test
