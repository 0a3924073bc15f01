#include "embedded/folder.hpp"

#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

TEST(Layout, TheSocketStandsInTheDataFolder) {
  const auto layout = layout_of("/var/lib/todoke/");
  EXPECT_EQ(layout.cluster, "/var/lib/todoke/postgres");
  EXPECT_EQ(layout.sockets, "/var/lib/todoke/run");
  EXPECT_EQ(url_of(layout), "host='/var/lib/todoke/run' port=5432 user=todoke dbname='todoke'");
}

TEST(Layout, APathTooLongForASocketMovesItToTmp) {
  const std::string socket_name = "/run/.s.PGSQL.5432";
  const std::string fits(kSocketPathBytesMax - socket_name.size() - 1, 'd');
  EXPECT_EQ(layout_of("/" + fits).sockets, "/" + fits + "/run");

  const auto moved = layout_of("/" + fits + "d");
  EXPECT_TRUE(moved.sockets.starts_with("/tmp/todoke-")) << moved.sockets;
  EXPECT_EQ(moved.cluster, "/" + fits + "d/postgres");
  EXPECT_NE(moved.sockets, layout_of("/" + fits + "e").sockets);
}

TEST(Layout, ACommaMovesTheSocketBecauseLibpqWouldSplitThere) {
  EXPECT_TRUE(layout_of("/srv/a,b").sockets.starts_with("/tmp/todoke-"));
}

TEST(Layout, QuotesInThePathAreEscapedForLibpq) {
  EXPECT_EQ(url_of(layout_of("/srv/it's")), "host='/srv/it\\'s/run' port=5432 user=todoke dbname='todoke'");
}

}  // namespace
}  // namespace todoke::embedded
