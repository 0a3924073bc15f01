#include "embedded/binaries.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<PostgresBinaries> kNewer{{"/pg/16/bin", 16}, {"/pg/17/bin", 17}};

TEST(EmbeddedBinaries, ANewClusterGetsTheHighestVersion) {
  const auto chosen = choose_postgres({{"/pg/15/bin", 15}, {"/pg/17/bin", 17}}, std::nullopt, "/data");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->bin_dir, "/pg/17/bin");
}

TEST(EmbeddedBinaries, AClusterKeepsItsVersion) {
  const auto chosen = choose_postgres({{"/pg/15/bin", 15}, {"/pg/17/bin", 17}}, 15, "/data");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->major, 15);
}

TEST(EmbeddedBinaries, AClusterOfAMissingVersionIsRefusedWithTheWayOut) {
  const auto chosen = choose_postgres(kNewer, 15, "/data");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().message,
            "the data folder /data was made by Postgres 15 but only 16, 17 are installed: install "
            "postgresql-15, or "
            "upgrade the cluster with pg_upgrade");
}

TEST(EmbeddedBinaries, NoPostgresAtAllNamesThePackage) {
  const auto chosen = choose_postgres({}, std::nullopt, "/data");
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message,
              AllOf(HasSubstr("apt-get install postgresql-15"), HasSubstr("make up")));
}

TEST(EmbeddedBinaries, AnOldPostgresMakesNoNewCluster) {
  const auto chosen = choose_postgres({{"/pg/13/bin", 13}}, std::nullopt, "/data");
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message, HasSubstr("only 13 is installed"));
}

TEST(EmbeddedBinaries, TheVersionIsReadFromWhatPostgresSays) {
  EXPECT_EQ(major_from_version_text("postgres (PostgreSQL) 15.19 (Debian 15.19-0+deb12u1)\n"), 15);
  EXPECT_EQ(major_from_version_text("postgres (PostgreSQL) 18beta1\n"), 18);
  EXPECT_EQ(major_from_version_text("bash: no such program"), std::nullopt);
}

TEST(EmbeddedBinaries, AMissingFolderMeansNothingInstalled) {
  EXPECT_TRUE(installed_postgres("/nonexistent/postgresql").empty());
}

}  // namespace
}  // namespace todoke::embedded
