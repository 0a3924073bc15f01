#include "embedded/settings.hpp"

#include <gtest/gtest.h>

#include "embedded/tcp.hpp"

namespace todoke::embedded {
namespace {

constexpr std::uint64_t kGb = 1024ULL * 1024 * 1024;

TEST(Settings, ASmallMachineGetsTheLowerBounds) {
  const auto settings = settings_for(kGb / 2, 1 * kGb);
  EXPECT_EQ(settings.shared_buffers_mb, 128u);
  EXPECT_EQ(settings.effective_cache_size_mb, 256u);
  EXPECT_EQ(settings.maintenance_work_mem_mb, 64u);
  EXPECT_EQ(settings.max_wal_size_mb, 256u);
}

TEST(Settings, AMiddlingMachineGetsShares) {
  const auto settings = settings_for(8 * kGb, 20 * kGb);
  EXPECT_EQ(settings.shared_buffers_mb, 1024u);
  EXPECT_EQ(settings.effective_cache_size_mb, 4096u);
  EXPECT_EQ(settings.maintenance_work_mem_mb, 256u);
  EXPECT_EQ(settings.max_wal_size_mb, 2048u);
}

TEST(Settings, ALargeMachineGetsTheUpperBounds) {
  const auto settings = settings_for(256 * kGb, 4096 * kGb);
  EXPECT_EQ(settings.shared_buffers_mb, 2048u);
  EXPECT_EQ(settings.effective_cache_size_mb, 128u * 1024u);
  EXPECT_EQ(settings.maintenance_work_mem_mb, 512u);
  EXPECT_EQ(settings.max_wal_size_mb, 4096u);
}

TEST(Settings, AnEmptyMachineStillGivesValidSettings) {
  const auto settings = settings_for(0, 0);
  EXPECT_GE(settings.effective_cache_size_mb, 1u);
  EXPECT_EQ(settings.max_wal_size_mb, 256u);
}

TEST(Settings, TheFileKeepsDataSafeAndTheServerOffTheNetwork) {
  const auto file = settings_file(settings_for(8 * kGb, 20 * kGb), tcp_settings(std::nullopt));
  for (const char* line : {"\nlisten_addresses = ''\n", "\nfsync = on\n", "\nfull_page_writes = on\n",
                           "\nshared_buffers = 1024MB\n", "\nmax_wal_size = 2048MB\n",
                           "\nmaintenance_work_mem = 256MB\n", "\nlog_parameter_max_length = 0\n"}) {
    EXPECT_NE(file.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace todoke::embedded
