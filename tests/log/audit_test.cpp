// `todoke audit` beside a running node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class AuditCommand : public testing::Test {
 protected:
  AuditCommand() {
    node.publish(1, 10);
    wait_until("the index", [&] {
      return node.sql(
                 "SELECT last_seq = (SELECT max(seq) FROM cn_relay.events_outbox) "
                 "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'") == "t";
    });
  }
  std::string note_id() {
    return node.sql(
        "SELECT event_id FROM cn_relay.effective_events WHERE kind = 1 ORDER BY event_id LIMIT 1");
  }

  LogNode node{Tcp::closed};
};

TEST_F(AuditCommand, OfALogThatWasFollowedEndsWell) {
  static_cast<void>(node.add("feed"));
  const auto audited = node.todoke({"audit"});
  EXPECT_EQ(audited.code, 0) << audited.out;
  EXPECT_THAT(audited.out, HasSubstr("index-v1: at seq "));
  EXPECT_THAT(audited.out, HasSubstr("rows recounted, all as recorded\n"));
  EXPECT_THAT(audited.out, HasSubstr("feed: at seq 0, keeps no record of what it took\n"));
  EXPECT_THAT(audited.out, HasSubstr("all is well\n"));
}

TEST_F(AuditCommand, NamesTheRangeThatDiffers) {
  node.sql("UPDATE cn_relay.consumer_ranges SET row_count = row_count + 1 WHERE consumer = 'index-v1'");
  const auto range = node.sql(
      "SELECT format('seq %s to %s', from_seq + 1, to_seq) FROM cn_relay.consumer_ranges "
      "WHERE consumer = 'index-v1' ORDER BY from_seq LIMIT 1");
  const auto audited = node.todoke({"audit"});
  EXPECT_EQ(audited.code, 1);
  EXPECT_THAT(audited.out, HasSubstr("DIFFERS     index-v1: " + range + ": the log has "));
  EXPECT_THAT(audited.out, HasSubstr("something differs: see above\n"));
}

TEST_F(AuditCommand, KnowsPurgedFromLost) {
  const auto id = note_id();
  node.sql(fmt::format("DELETE FROM cn_relay.events WHERE event_id = '{}'", id));
  const auto seq = node.sql(fmt::format("SELECT seq FROM cn_relay.events_outbox WHERE event_id = '{}'", id));
  const auto lost = node.todoke({"audit"});
  EXPECT_EQ(lost.code, 1);
  EXPECT_THAT(lost.out, HasSubstr(fmt::format("LOST        the event of seq {} is missing\n", seq)));

  node.sql(fmt::format(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at, reason) "
      "SELECT 'delete', event_id, topic_id, kind, created_at, ingested_at, 'operator' "
      "FROM cn_relay.events_outbox WHERE event_id = '{}'",
      id));
  const auto purged = node.todoke({"audit"});
  EXPECT_EQ(purged.code, 0) << purged.out;
  EXPECT_THAT(purged.out, HasSubstr("purged      1 rows whose event was purged since"));
  EXPECT_THAT(purged.out, Not(HasSubstr("LOST")));
}

TEST_F(AuditCommand, FindsAnEventWithoutItsRow) {
  const auto id = note_id();
  node.sql(fmt::format("DELETE FROM cn_relay.events_outbox WHERE event_id = '{}'", id));
  const auto audited = node.todoke({"audit"});
  EXPECT_EQ(audited.code, 1);
  EXPECT_THAT(audited.out, HasSubstr(fmt::format("LOST        the log has no row for event {}\n", id)));
  EXPECT_THAT(audited.out, HasSubstr("DIFFERS     index-v1: "));
}

}  // namespace
}  // namespace todoke::test
