#include "base/log.hpp"

#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log_rate.hpp"

namespace todoke::log {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(Format format, const std::function<void()>& action) {
  configure(Level::info, format);
  std::vector<std::string> lines;
  {
    const Capture capture([&](std::string_view line) { lines.emplace_back(line); });
    action();
    flush();
  }
  configure(Level::info, Format::human);
  return lines;
}

TEST(Log, AJsonLineHasStableFieldsAndTypes) {
  const auto lines = lines_of(Format::json, [] {
    info("pg", "started \"well\"\n", {{"pid", 7}, {"ok", true}, {"ratio", 0.5}, {"path", "/a b"}});
  });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::StartsWith("{\"ts\":\"20"));
  EXPECT_THAT(lines[0], HasSubstr(R"("level":"info","component":"pg","msg":"started \"well\"\n",)"
                                  R"("pid":7,"ok":true,"ratio":0.5,"path":"/a b"})"));
}

TEST(Log, AHumanLineIsOneLine) {
  const auto lines =
      lines_of(Format::human, [] { warning("net", "two\nlines", {{"path", "/a b"}, {"n", 1}}); });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("warning net: two lines path=\"/a b\" n=1"));
}

TEST(Log, LinesBelowTheLeastLevelAreLeftOut) {
  EXPECT_TRUE(lines_of(Format::json, [] { debug("x", "not shown"); }).empty());
}

TEST(Log, ALongLineIsCutAndSaysSo) {
  const std::string longer(100'000, 'x');
  for (const auto format : {Format::json, Format::human}) {
    const auto lines = lines_of(format, [&] { info("x", "m", {{"text", longer}}); });
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_LT(lines[0].size(), 9000U);
    EXPECT_THAT(lines[0], HasSubstr("[cut]"));
    if (format == Format::json) {
      EXPECT_TRUE(lines[0].ends_with("\"}"));
    }
  }
}

TEST(Log, AFullQueueDropsCountsAndTells) {
  const auto before = dropped();
  std::mutex gate;
  std::vector<std::string> lines;
  {
    const Capture capture([&](std::string_view line) {
      const std::lock_guard lock(gate);
      lines.emplace_back(line);
    });
    {
      const std::lock_guard closed(gate);  // the writing thread hangs in the sink meanwhile
      for (int i = 0; i < 20'000; ++i) info("x", "line");
    }
    info("x", "after");
    flush();
  }
  EXPECT_GT(dropped(), before);
  EXPECT_LT(lines.size(), 20'000U);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("lines dropped")));
}

TEST(LogRate, LetsSoManyThroughInASecondAndCountsTheOthers) {
  LogRate rate(2);
  SteadyTime now{};
  now += std::chrono::hours(1);
  EXPECT_TRUE(rate.allows(now));
  EXPECT_TRUE(rate.allows(now));
  EXPECT_FALSE(rate.allows(now));
  EXPECT_FALSE(rate.allows(now + std::chrono::milliseconds(999)));
  EXPECT_TRUE(rate.allows(now + std::chrono::seconds(1)));
  EXPECT_EQ(rate.take_left_out(), 2U);
  EXPECT_EQ(rate.take_left_out(), 0U);
}

}  // namespace
}  // namespace todoke::log
