#include "embedded/machine.hpp"

#include <filesystem>
#include <fstream>
#include <stdlib.h>

#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

constexpr std::uint64_t kMb = 1024 * 1024;

// A machine of files, with 8 GiB.
class Machine : public testing::Test {
 protected:
  Machine() {
    std::string pattern = "/tmp/todoke-machine-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    put("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          100 kB\n");
  }
  ~Machine() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }

  std::string root_;
};

TEST_F(Machine, WithoutControlGroupsAllMemoryCounts) {
  EXPECT_EQ(machine_memory_bytes(root_), 8192 * kMb);
}

TEST_F(Machine, TheSmallestLimitOfAllGroupsAboveCounts) {
  put("/proc/self/cgroup", "0::/system.slice/todoke.service\n");
  put("/sys/fs/cgroup/system.slice/todoke.service/memory.max", "max\n");
  put("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
  EXPECT_EQ(machine_memory_bytes(root_), 1024 * kMb);
}

TEST_F(Machine, AContainersOwnRootGroupCounts) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(machine_memory_bytes(root_), 512 * kMb);
}

TEST_F(Machine, TheOldHierarchyCounts) {
  put("/proc/self/cgroup", "5:cpu,memory:/docker/abc\n1:name=systemd:/docker/abc\n");
  put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(machine_memory_bytes(root_), 2048 * kMb);
}

TEST_F(Machine, ALimitAboveTheMemoryDoesNotCount) {
  put("/proc/self/cgroup", "5:memory:/\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(machine_memory_bytes(root_), 8192 * kMb);
}

TEST(MachineHere, HasMemoryAndDisk) {
  EXPECT_GT(machine_memory_bytes(), 16 * kMb);
  EXPECT_GT(free_disk_bytes("/tmp"), 0u);
}

}  // namespace
}  // namespace todoke::embedded
