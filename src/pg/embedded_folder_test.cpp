#include "pg/embedded_folder.hpp"

#include <gtest/gtest.h>

namespace todoke::pg {
namespace {

TEST(EmbeddedLayout, TheSocketStandsInTheDataFolder) {
  const auto layout = embedded_layout("/var/lib/todoke/", 1000);
  EXPECT_EQ(layout.cluster, "/var/lib/todoke/postgres");
  EXPECT_EQ(layout.sockets, "/var/lib/todoke/run");
  EXPECT_EQ(embedded_connection_string(layout),
            "host='/var/lib/todoke/run' port=5432 user=todoke dbname='todoke'");
}

TEST(EmbeddedLayout, APathTooLongForASocketMovesItToTmp) {
  const std::string socket_name = "/run/.s.PGSQL.5432";
  const std::string fits(kSocketPathBytesMax - socket_name.size() - 1, 'd');
  EXPECT_EQ(embedded_layout("/" + fits, 7).sockets, "/" + fits + "/run");

  const auto moved = embedded_layout("/" + fits + "d", 7);
  EXPECT_TRUE(moved.sockets.starts_with("/tmp/todoke-7-")) << moved.sockets;
  EXPECT_EQ(moved.cluster, "/" + fits + "d/postgres");
  EXPECT_NE(moved.sockets, embedded_layout("/" + fits + "e", 7).sockets);
}

TEST(EmbeddedLayout, ACommaMovesTheSocketBecauseLibpqWouldSplitThere) {
  EXPECT_TRUE(embedded_layout("/srv/a,b", 7).sockets.starts_with("/tmp/todoke-7-"));
}

TEST(EmbeddedLayout, QuotesInThePathAreEscapedForLibpq) {
  EXPECT_EQ(embedded_connection_string(embedded_layout("/srv/it's", 7)),
            "host='/srv/it\\'s/run' port=5432 user=todoke dbname='todoke'");
}

}  // namespace
}  // namespace todoke::pg
