#include "outbox/log_row.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace todoke::outbox {
namespace {

LogRow row(std::int64_t seq, std::string event_id, std::string topic_id = "t", Op op = Op::upsert) {
  LogRow made;
  made.seq = {seq};
  made.op = op;
  made.event_id = std::move(event_id);
  made.topic_id = std::move(topic_id);
  return made;
}

TEST(RowDigest, IsTheSameInWhateverOrderAndInWhateverPartsTheRowsCome) {
  std::vector<LogRow> rows{row(1, "a"), row(2, "b"), row(3, "c"), row(4, "d")};
  const auto whole = digest_of(rows);
  EXPECT_EQ(whole.count, 4);
  const auto first = digest_of(std::span(rows).first(1));
  const auto rest = digest_of(std::span(rows).subspan(1));
  EXPECT_EQ(first.hash ^ rest.hash, whole.hash);
  std::reverse(rows.begin(), rows.end());
  EXPECT_EQ(digest_of(rows), whole);
}

TEST(RowDigest, DiffersWithEveryPartOfARow) {
  const auto of = [](const LogRow& one) { return digest_of(std::span(&one, 1)).hash; };
  const auto base = of(row(1, "a"));
  EXPECT_NE(of(row(2, "a")), base);
  EXPECT_NE(of(row(1, "b")), base);
  EXPECT_NE(of(row(1, "a", "u")), base);
  EXPECT_NE(of(row(1, "a", "t", Op::erase)), base);
  // Where one text ends and the next begins counts.
  EXPECT_NE(of(row(1, "ab", "c")), of(row(1, "a", "bc")));
}

TEST(RowDigest, TellsARowMoreOrLessOrOneInThePlaceOfAnother) {
  const std::vector<LogRow> rows{row(1, "a"), row(2, "b")};
  EXPECT_NE(digest_of(rows), digest_of(std::vector{row(1, "a")}));
  EXPECT_NE(digest_of(rows), digest_of(std::vector{row(1, "a"), row(3, "b")}));
  // A row that came twice: the hashes cancel each other out, the count does not.
  EXPECT_NE(digest_of(std::vector{row(1, "a"), row(1, "a")}), RowDigest());
}

// What stands in the table must mean the same to every later version.
TEST(RowDigest, DoesNotChangeFromVersionToVersion) {
  RowDigest digest;
  digest.add(42, "upsert", "0123456789abcdef", "kukuri:global");
  EXPECT_EQ(digest.count, 1);
  EXPECT_EQ(digest.hash, 17315424946260425082U);
}

TEST(LogRow, OpsAreWrittenAsTheLogHasThem) {
  EXPECT_EQ(to_string(Op::upsert), "upsert");
  EXPECT_EQ(to_string(Op::erase), "delete");
}

}  // namespace
}  // namespace todoke::outbox
