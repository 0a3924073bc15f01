#include "net/refusal_log.hpp"

#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"

namespace todoke::net {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct RefusalLogTest : testing::Test {
  std::vector<std::string> lines_of(const std::function<void()>& work) {
    std::vector<std::string> lines;
    std::mutex mutex;
    log::flush();
    const log::Capture capture([&](std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    });
    work();
    log::flush();
    return lines;
  }
  bool suspected(int times) {
    return registry.render().find("todoke_proxy_suspected_total " + std::to_string(times) + "\n") !=
           std::string::npos;
  }

  metrics::Registry registry;
  RefusalLog refusals{"relay", registry};
  SteadyTime now{1h};
};

TEST_F(RefusalLogTest, LineASecondNamesTheNetworkAndCountsTheOthers) {
  const auto lines = lines_of([&] {
    for (int i = 0; i < 50; ++i) refusals.refused("event", "192.0.2.7", now);
    refusals.refused("req", "2001:db8:1:2::3", now + 1s);
  });
  EXPECT_THAT(lines,
              ElementsAre(AllOf(HasSubstr("192.0.2.0/24"), HasSubstr("event"), Not(HasSubstr("192.0.2.7"))),
                          AllOf(HasSubstr("2001:db8:1::/48"), HasSubstr("49"))));
}

TEST_F(RefusalLogTest, PeerThatNamesOthersAndGetsMostRefusalsIsSuspectedOnce) {
  for (int i = 0; i < 5; ++i) refusals.forwarded("10.0.0.1");
  refusals.forwarded("192.0.2.7");
  const auto lines = lines_of([&] {
    for (int i = 0; i < 100; ++i) refusals.refused("event", "10.0.0.1", now);
    for (int i = 0; i < 100; ++i) refusals.refused("event", "10.0.0.1", now + 2min);
  });
  EXPECT_TRUE(suspected(1));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("server.trusted_proxies")).Times(1));
  for (int i = 0; i < 100; ++i) refusals.refused("event", "10.0.0.1", now + 13min);
  EXPECT_TRUE(suspected(2));
}

TEST_F(RefusalLogTest, RefusalsOfOthersAreNoSuspicion) {
  refusals.forwarded("10.0.0.1");
  for (int i = 0; i < 100; ++i) {
    refusals.refused("event", "192.0.2." + std::to_string(i), now);
    if (i % 4 == 0) refusals.refused("event", "10.0.0.1", now);
  }
  EXPECT_TRUE(suspected(0));
}

TEST_F(RefusalLogTest, WithoutForwardedRequestsNobodyIsSuspected) {
  for (int i = 0; i < 100; ++i) refusals.refused("event", "10.0.0.1", now);
  EXPECT_TRUE(suspected(0));
}

}  // namespace
}  // namespace todoke::net
