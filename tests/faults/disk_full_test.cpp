// A real disk that gets full: a tmpfs of some hundred MiB. The test runs itself again in a mount namespace of
// its own, where it may mount one: as root by unshare -m; as any other user by unshare -rm, and back to that
// user inside of it. Where the system forbids that, it says so and is skipped.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/database.hpp"
#include "faults/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMebibyte = 1024 * 1024;
constexpr int kDiskMebibytes = 560;
constexpr std::uint64_t kBallast = 160 * kMebibyte;
constexpr const char* kMinFree = "96MiB";
constexpr const char* kDisk = "TODOKE_TEST_DISK";
constexpr std::size_t kContentBytes = 48 * 1024;
constexpr int kEventsMax = 20'000;  // a gigabyte: far more than the disk has

// The exit code of a shell that could not make the disk.
constexpr int kNoDisk = 75;

std::string shell_quoted(const std::string& text) {
  return "'" + text + "'";  // paths of tests have no quotes
}

// Runs this test program with one test on a new disk at `folder`.
Exit run_on_disk(const std::string& test, const std::filesystem::path& folder) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  const auto back =
      uid == 0 ? std::string("exec") : fmt::format("exec unshare -U --map-user={} --map-group={}", uid, gid);
  const auto script =
      fmt::format("mount -t tmpfs -o size={}m,mode=0711 tmpfs {} || exit {}; {} {} --gtest_filter={}",
                  kDiskMebibytes, shell_quoted(folder.string()), kNoDisk, back, shell_quoted(self), test);
  return run_command({"unshare", uid == 0 ? "-m" : "-rm", "sh", "-c", script},
                     {fmt::format("{}={}", kDisk, folder.string())});
}

std::uint64_t free_bytes(const std::string& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) throw std::runtime_error("statvfs");
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

// Writes until the file has that size or the disk is full.
void fill(const std::string& path, std::uint64_t bytes) {
  const std::string block(kMebibyte, 'x');
  std::ofstream file(path, std::ios::binary);
  for (std::uint64_t written = 0; written < bytes && file; written += block.size()) {
    file.write(block.data(), static_cast<std::streamsize>(block.size())).flush();
  }
}

// Text that no compression makes smaller by much.
std::string noise(std::mt19937_64& engine, std::size_t bytes) {
  std::string text(bytes, ' ');
  for (auto& c : text) c = static_cast<char>('!' + engine() % 90);
  return text;
}

std::string text_of_order(const std::string& address) {
  return run_command({"curl", "-s", "-i", "-H", "Content-Type: application/json", "-H",
                      "Idempotency-Key: key-0001", "-d",
                      R"({"instrument":"BTC-USD","side":"BUY","qty":1,"idempotency_key":"key-0001"})",
                      "http://" + address + "/do/order"})
      .out;
}

class Full : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* disk = std::getenv(kDisk)) {
      disk_ = disk;
      return;
    }
    const TempFolder folder;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    const auto exit = run_on_disk(fmt::format("{}.{}", info->test_suite_name(), info->name()), folder.path());
    if (exit.code == kNoDisk || exit.err.starts_with("unshare")) {
      GTEST_SKIP() << "this user can't mount a tmpfs in a namespace of its own: " << exit.err;
    }
    EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
  }

  [[nodiscard]] bool has_disk() const { return !disk_.empty(); }
  [[nodiscard]] std::string file(const std::string& name) const { return disk_ + "/" + name; }
  [[nodiscard]] std::string data_dir() const { return file("data"); }
  [[nodiscard]] pid_t postmaster() const {
    std::ifstream lock(data_dir() + "/postgres/postmaster.pid");
    pid_t pid = 0;
    lock >> pid;
    return pid;
  }

  // Publishes until something else than OK true comes; what that says. Remembers what was accepted.
  std::string publish_until_refused(NostrClient& client) {
    for (int i = 0; i < kEventsMax; ++i) {
      const auto event = note(alice_, noise(engine_, kContentBytes));
      const auto answer = client.publish(event);
      if (!answer.accepted) return answer.text;
      accepted_.insert(event.id().hex());
    }
    return "never refused";
  }

  std::string disk_;
  std::set<std::string> accepted_;
  nostr::SecretKey alice_ = nostr::SecretKey::generate();
  std::mt19937_64 engine_{std::random_device()()};
};

TEST_F(Full, WritesStopBeforePostgresDoesAndNothingAcknowledgedIsLostWhenSomebodyElseFillsTheRest) {
  if (!has_disk()) return;
  fill(file("ballast"), kBallast);
  RelayProcess node(data_dir(), {"--capacity.min_free_bytes", kMinFree});
  const auto first_postmaster = postmaster();
  NostrClient client(node.url());

  // Its own writes stop while Postgres still has room.
  EXPECT_EQ(publish_until_refused(client), "error: storage full");
  ASSERT_GT(accepted_.size(), 100U);
  EXPECT_GT(free_bytes(disk_), 48 * kMebibyte) << "it stopped too late";
  EXPECT_EQ(postmaster(), first_postmaster);
  EXPECT_EQ(client.stored(R"({"#t":["kukuri:global"],"limit":3})").ids.size(), 3U) << "reads go on";
  const auto order = text_of_order(node.public_address());
  EXPECT_THAT(order, HasSubstr("503"));
  EXPECT_THAT(order, HasSubstr("Retry-After"));
  EXPECT_THAT(order, HasSubstr("STORAGE_FULL"));
  EXPECT_THAT(node.health(), HasSubstr("storage full: "));

  // Somebody else takes the rest, and Postgres can't write its WAL any more.
  fill(file("filler"), kDiskMebibytes * kMebibyte);
  ASSERT_LT(free_bytes(disk_), kMebibyte);
  wait_until("the end of Postgres", [&] {
    try {
      SqlSession(conninfo_of(data_dir()))
          .run("SELECT pg_logical_emit_message(true, 'x', 'y'), pg_switch_wal()");
    } catch (const std::exception&) {
      return node.process().err().find("Postgres starts as soon as there is room") != std::string::npos;
    }
    return false;
  });
  EXPECT_THAT(node.process().err(), HasSubstr("its disk is full"));
  EXPECT_FALSE(node.process().has_ended());
  EXPECT_THAT(node.health(), HasSubstr("degraded"));

  // What the filler got can be less than Postgres needs to start.
  std::filesystem::remove(file("filler"));
  std::filesystem::remove(file("ballast"));
  node.process().wait_for_output("there is room again: Postgres starts");
  wait_until("the database", [&] {
    try {
      return SqlSession(conninfo_of(data_dir())).value("SELECT 1") == "1";
    } catch (const std::exception&) {
      return false;
    }
  });
  wait_until("room", [&] { return node.metric("todoke_storage_full") == 0; });
  expect_serves(node);
  SqlSession database(conninfo_of(data_dir()));
  const auto stored = stored_ids(database);
  for (const auto& id : accepted_) EXPECT_TRUE(stored.contains(id)) << id << " had an OK and is lost";
  EXPECT_EQ(problems_in_store(database), "");
  EXPECT_EQ(node.stop().code, 0);
}

}  // namespace
}  // namespace todoke::test
