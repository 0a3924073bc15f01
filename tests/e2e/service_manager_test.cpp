// A node that systemd has started: the test is the service manager.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

// A socket without a file, so that a node that has given up root reaches it too.
class Manager {
 public:
  Manager() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name_.begin() + 1, name_.end(), address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    const timeval patience{60, 0};
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  }

  [[nodiscard]] std::string environment() const { return "NOTIFY_SOCKET=" + name_; }
  // The next message; empty when none comes.
  std::string receive() {
    std::array<char, 256> text{};
    const auto size = recv(socket_.get(), text.data(), text.size(), 0);
    return size < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
  }
  // Passes over what comes before it. False: it does not come.
  bool hears(const std::string& wanted) {
    for (auto text = receive(); !text.empty(); text = receive()) {
      if (text == wanted) return true;
    }
    return false;
  }

 private:
  std::string name_ = "@todoke-test-" + random_hex(8);
  Fd socket_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(ServiceManager, HearsThatTheNodeIsReadyThatItLivesAndThatItStops) {
  const TempFolder folder;
  Manager manager;
  TodokeUp node(folder.path(), {}, {manager.environment(), "WATCHDOG_USEC=300000"});
  EXPECT_TRUE(manager.hears("READY=1"));
  EXPECT_EQ(http_get("http://" + node.internal_address() + "/healthz").status, 200);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(manager.hears("WATCHDOG=1"));
  node.process().kill(SIGTERM);
  EXPECT_TRUE(manager.hears("STOPPING=1"));
  EXPECT_EQ(node.process().wait().code, 0);
}

TEST(ServiceManager, ThatDoesNotAskForThisProcessGetsNoBeats) {
  const TempFolder folder;
  Manager manager;
  TodokeUp node(folder.path(), {},
                {manager.environment(), "WATCHDOG_USEC=300000", "WATCHDOG_PID=1", "TODOKE_LOG_LEVEL=info"});
  EXPECT_EQ(manager.receive(), "READY=1");
  node.process().kill(SIGTERM);
  EXPECT_EQ(manager.receive(), "STOPPING=1");
  EXPECT_EQ(node.process().wait().code, 0);
}

}  // namespace
}  // namespace todoke::test
