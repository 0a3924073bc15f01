#include "embedded/output.hpp"

#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

using log::Level;

TEST(PostgresLog, SeveritiesBecomeLevels) {
  const std::vector<std::pair<std::string, Level>> cases{
      {"LOG", Level::info},    {"NOTICE", Level::info}, {"DEBUG1", Level::debug}, {"WARNING", Level::warning},
      {"ERROR", Level::error}, {"FATAL", Level::error}, {"PANIC", Level::error},
  };
  for (const auto& [severity, level] : cases) {
    const auto line = severity + ":  some words";
    const auto parsed = parse_postgres_line(line, Level::info);
    EXPECT_EQ(parsed.level, level) << severity;
    EXPECT_EQ(parsed.severity, severity);
    EXPECT_EQ(parsed.text, "some words");
  }
}

TEST(PostgresLog, AConnectionThatAStopEndsIsNoNews) {
  const auto parsed =
      parse_postgres_line("FATAL:  terminating connection due to administrator command", Level::info);
  EXPECT_EQ(parsed.level, Level::debug);
  EXPECT_EQ(parsed.severity, "FATAL");
  const auto unsent = parse_postgres_line("LOG:  could not send data to client: Broken pipe", Level::info);
  EXPECT_EQ(unsent.level, Level::debug);
}

TEST(PostgresLog, AnOperatorsPrefixIsTakenOff) {
  const auto parsed =
      parse_postgres_line("2026-01-02 03:04:05 UTC [4711] ERROR:  no such table:  x", Level::info);
  EXPECT_EQ(parsed.level, Level::error);
  EXPECT_EQ(parsed.text, "no such table:  x");
}

TEST(PostgresLog, DetailsAndContinuedLinesKeepTheLevelBefore) {
  EXPECT_EQ(parse_postgres_line("HINT:  try again", Level::error).level, Level::error);
  EXPECT_EQ(parse_postgres_line("HINT:  try again", Level::error).text, "HINT:  try again");
  EXPECT_EQ(parse_postgres_line("\tFROM b", Level::warning).level, Level::warning);
  EXPECT_EQ(parse_postgres_line("\tFROM b", Level::warning).text, "\tFROM b");
}

std::vector<std::string> cut(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  LineCutter cutter([&lines](std::string_view line) { lines.emplace_back(line); });
  for (const auto& piece : pieces) cutter.feed(piece);
  cutter.finish();
  return lines;
}

TEST(LineCutter, LinesMayArriveInPieces) {
  EXPECT_EQ(cut({"a", "b\nc", "\n\nlast"}), (std::vector<std::string>{"ab", "c", "last"}));
}

TEST(LineCutter, AStatementOfSeveralLinesIsOne) {
  EXPECT_EQ(
      cut({"ERROR:  no\nSTATEMENT:  SELECT 1\n\tFROM b\n", "\tWHERE c\nLOG:  next\n"}),
      (std::vector<std::string>{"ERROR:  no", "STATEMENT:  SELECT 1\n\tFROM b\n\tWHERE c", "LOG:  next"}));
  EXPECT_EQ(cut({"\talone\n"}), std::vector<std::string>{"\talone"});
}

TEST(LineCutter, AStatementIsCutAtTheLimitOfALine) {
  const std::string part(kOutputLineBytesMax / 2, 'x');
  EXPECT_EQ(cut({part + "\n\t" + part + "\n\tmore " + part + "\nnext\n"}),
            (std::vector<std::string>{part + " …[cut]", "next"}));
}

TEST(LineCutter, ALineIsGivenWhenTheWriterPauses) {
  std::vector<std::string> lines;
  LineCutter cutter([&lines](std::string_view line) { lines.emplace_back(line); });
  cutter.feed("one\ntw");
  cutter.release();
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
}

TEST(LineCutter, AnOverlongLineIsCutAndTheNextOneIsWhole) {
  const std::string flood(kOutputLineBytesMax, 'x');
  const auto lines = cut({flood, flood, "\nnext\n"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], flood + " …[cut]");
  EXPECT_EQ(lines[1], "next");
}

TEST(LineCutter, ALineOfExactlyTheLimitIsWhole) {
  const std::string line(kOutputLineBytesMax, 'x');
  EXPECT_EQ(cut({line, "\n"}), std::vector<std::string>{line});
}

TEST(OutputPipe, FinishGivesEverythingThatWasWritten) {
  std::vector<std::string> lines;
  OutputPipe pipe(OutputPipe::Overflow::wait, [&lines](std::string_view line) { lines.emplace_back(line); });
  const std::string text = "one\ntwo\nthree";
  ASSERT_EQ(::write(pipe.writing_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  pipe.finish();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(OutputPipe, AFullPipeDropsInsteadOfBlocking) {
  // The reader hangs in its first line until the writer is through.
  std::mutex hold;
  std::unique_lock held(hold);
  OutputPipe pipe(OutputPipe::Overflow::drop,
                  [&hold](std::string_view) { const std::lock_guard lock(hold); });
  const std::string line(1023, 'x');
  const auto text = line + "\n";
  constexpr int kMoreThanAPipeHolds = 3000;
  int dropped = 0;
  for (int i = 0; i < kMoreThanAPipeHolds; ++i) {
    if (::write(pipe.writing_end(), text.data(), text.size()) < 0) ++dropped;
  }
  EXPECT_GT(dropped, 0);
  held.unlock();
  pipe.finish();
}

}  // namespace
}  // namespace todoke::embedded
