// How stored events are read: what a REQ may hold, who waits for whom, and what ends it.
#include <sys/resource.h>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

std::string for_topic(const std::string& id) {
  return fmt::format(R"({{"#t":["{}"]}})", id);
}

// The most memory that this process has ever had.
std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

class ReadsTest : public TopicsTest {
 protected:
  // Asks until the answer comes from memory.
  void ask_until_from_memory(NostrClient& asking, const std::string& filters) {
    const auto before = rig.metric("todoke_query_memory_total");
    ASSERT_TRUE(await([&] {
      asking.stored(filters);
      return rig.metric("todoke_query_memory_total") > before;
    }));
  }
};

TEST_F(ReadsTest, EventOfTwoTopicsComesOnceFromWindowsThatWereFilledFromTheTables) {
  enable_topic(rig, topic('1'));
  enable_topic(rig, topic('2'));
  const auto event = note(alice, "", {{"t", topic('1')}, {"t", topic('2')}});
  store(event);
  rig.stop();
  rig.start();
  NostrClient later(rig.url());
  const auto both = for_topic(topic('1')) + "," + for_topic(topic('2'));
  ask_until_from_memory(later, both);
  EXPECT_THAT(later.stored(both).ids, ElementsAre(hex_of(event)));
}

TEST(LargeReadsTest, MemoryOfARequestDoesNotGrowWithItsFilters) {
  const RelayRig rig(Flags{{"relay.event_bytes_max", "1MiB"},
                           {"relay.message_bytes_max", "2MiB"},
                           {"relay.cache_bytes", "0"},
                           {"relay.query_timeout", "60s"},
                           {"relay.compression", "off"}});
  NostrClient client(rig.url(), large_messages());
  const auto alice = SecretKey::generate();
  std::string ids;
  Ids newest_first;
  for (int i = 0; i < 60; ++i) {
    const auto event = global_note(alice, std::to_string(i) + std::string(900'000, 'x'), {}, 1, kTime - i);
    store_at(client, event);
    newest_first.push_back(hex_of(event));
    ids += fmt::format(R"({}"{}")", i == 0 ? "" : ",", newest_first.back());
  }
  // 54 MB for each filter, if nothing stops it.
  std::string filters;
  for (int i = 0; i < 10; ++i) {
    filters += fmt::format("{}{},{}", i == 0 ? "" : ",", global_and(fmt::format(R"("limit":{})", 100 + i)),
                           global_and(fmt::format(R"("ids":[{}],"limit":{})", ids, 100 + i)));
  }
  const auto before = peak_bytes();
  const auto answer = client.stored(filters);
  EXPECT_THAT(answer.ids, ElementsAre(newest_first[0], newest_first[1]));
  EXPECT_TRUE(answer.has_more());
  const auto by_seq = client.stored(global_and(R"("seq_after":0)"));
  EXPECT_THAT(by_seq.ids, ElementsAre(newest_first[0], newest_first[1]));
  const auto two = global_and(R"("since":0)") + "," + global_and(fmt::format(R"("ids":[{}])", ids));
  EXPECT_EQ(client.count("c", two), R"(["COUNT","c",{"count":60}])");
  EXPECT_LT(peak_bytes() - before, 400 * kMiB);
}

// A client that reads as much as comes live for it, so that what waits for it never gets less.
TEST(SlowClientTest, BusyConnectionGetsToItsLaterRequests) {
  const RelayRig rig(Flags{{"relay.compression", "off"}, {"relay.send_queue_bytes_max", "64MiB"}});
  const auto alice = SecretKey::generate();
  NostrClient sender(rig.url());
  const std::string text(60'000, 'x');
  for (int i = 0; i < 40; ++i) store_at(sender, global_note(alice, text, {}, 1, kTime - i));
  net::WsClientOptions options;
  options.inbox_messages_max = 1;
  NostrClient slow(rig.url(), options);
  slow.send(fmt::format(R"(["REQ","live",{}])", global_and(R"("kinds":[7],"limit":0)")));
  // Pages of 2 MiB; the socket takes the first ones, the relay keeps four.
  for (int i = 0; i < 8; ++i) {
    slow.send(
        fmt::format(R"(["REQ","large{}",{}])", i, global_and(fmt::format(R"("kinds":[1,{}])", 100 + i))));
  }
  slow.send(fmt::format(R"(["REQ","small",{}])", global_and(R"("kinds":[2])")));
  bool answered = false;
  for (int i = 0; i < 1'000 && !answered; ++i) {
    store_at(sender, global_note(alice, std::to_string(i) + text, {}, 7));
    answered = slow.receive().starts_with(R"(["EOSE","small")");
  }
  EXPECT_TRUE(answered);
}

}  // namespace
}  // namespace todoke::test
