// Hostile clients against a running relay while a well-behaved one is served: it gets right answers, what the
// attack may take is bounded by the relay's own figures, and everything is given back. How fast it is served
// is told by bench/abuse.
//
// The hostile ones come from 127.0.0.2 and on, the well-behaved one from 127.0.0.1.
#include <fstream>

#include <fmt/format.h>

#include "harness/hostile_client.hpp"
#include "net/deflate.hpp"
#include "net/frame.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

double memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  throw std::runtime_error("no memory is told of this process");
}

class AbuseTest : public testing::Test {
 protected:
  static constexpr const char* kOpen = R"(todoke_http_connections{listener="public"})";
  static constexpr const char* kUnfinished = R"(todoke_http_unfinished_bytes{listener="public"})";
  static constexpr const char* kUnfinishedDropped =
      R"(todoke_http_unfinished_dropped_total{listener="public"})";
  static std::string refused(std::string_view why) {
    return fmt::format(R"(todoke_http_connections_refused_total{{listener="public",reason="{}"}})", why);
  }
  static Flags limits(Flags more) {
    Flags flags{{"limits.rates", "on"},
                {"limits.events_per_minute", "10000"},
                {"limits.reqs_per_minute", "10000"},
                {"limits.connections_per_minute", "10000"}};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // Stores, gets it back, and has it live.
  void expect_service(NostrClient& client) {
    const auto sub = fmt::format("live{}", served_);
    EXPECT_EQ(client.request(sub, global_and(R"("limit":0)")).closed, "");
    const auto event = global_note(alice, fmt::format("well-behaved {}", served_++));
    store_at(client, event);
    EXPECT_EQ(client.live(sub), event.json());
    EXPECT_THAT(client.stored(by_id(event)).ids, ElementsAre(hex_of(event)));
    client.send(fmt::format(R"(["CLOSE","{}"])", sub));
  }

  SecretKey alice = SecretKey::generate();
  int served_ = 0;
};

TEST_F(AbuseTest, SilentConnectionsOfOneAddress) {
  const RelayRig rig(limits({{"limits.connections_per_address", "20"}, {"server.header_timeout", "5s"}}));
  NostrClient client(rig.url());
  std::vector<HostileClient> flood;
  for (int i = 0; i < 200; ++i) flood.emplace_back(rig.port(), "127.0.0.2");
  expect_service(client);
  EXPECT_TRUE(rig.await_metric(refused("connections_per_address"), 180));
  EXPECT_LE(rig.metric(kOpen), 21);
  NostrClient another(rig.url());
  expect_service(another);
  EXPECT_TRUE(rig.await_metric(refused("silent"), 20));
  EXPECT_TRUE(rig.await_metric(kOpen, 2));
}

TEST_F(AbuseTest, SilentConnectionsOfManyAddresses) {
  const RelayRig rig(limits({{"server.connections_max", "100"}, {"server.header_timeout", "5s"}}));
  NostrClient client(rig.url());
  std::vector<HostileClient> flood;
  for (int i = 0; i < 300; ++i) flood.emplace_back(rig.port(), fmt::format("127.1.{}.{}", i / 250, i % 250));
  expect_service(client);
  EXPECT_TRUE(rig.await_metric(refused("connections_max"), 201));
  EXPECT_LE(rig.metric(kOpen), 100);
  // Their places are free again without their doing.
  EXPECT_TRUE(rig.await_metric(kOpen, 1));
  NostrClient another(rig.url());
  expect_service(another);
}

TEST_F(AbuseTest, MessagesThatNeverEnd) {
  const RelayRig rig(limits({{"relay.message_timeout", "1s"}}));
  NostrClient client(rig.url());
  std::vector<HostileClient> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(HostileClient::websocket(rig.port(), "127.0.0.2"));
    std::string frame;
    net::append_frame(frame, 0x81, std::string(1'000, 'x'), net::Masking::random);
    slow.back().write(frame.substr(0, 1 + static_cast<std::size_t>(i) * 10));
  }
  expect_service(client);
  for (auto& hostile : slow) EXPECT_THAT(hostile.read_to_end(), HasSubstr("message too slow"));
  EXPECT_EQ(rig.metric("todoke_ws_late_messages_total"), 50);
  expect_service(client);
  EXPECT_TRUE(rig.await_metric("todoke_ws_connections", 1));
}

TEST_F(AbuseTest, MessagesThatAreNotSentToTheirEnd) {
  const RelayRig rig(limits({}));
  NostrClient client(rig.url());
  std::string frame;
  net::append_frame(frame, 0x81, std::string(1'000'000, 'x'), net::Masking::random);
  frame.pop_back();
  std::vector<HostileClient> hostile;
  for (int i = 0; i < 300; ++i) {
    hostile.push_back(HostileClient::websocket(rig.port(), fmt::format("127.1.0.{}", 1 + i % 10)));
    hostile.back().write(frame);
  }
  expect_service(client);
  EXPECT_TRUE(await([&] { return rig.metric(kUnfinishedDropped) >= 100; })) << "of 300 MB 128 MiB may stay";
  EXPECT_LE(rig.metric(kUnfinished), 140.0 * 1024 * 1024);
  // A large one that arrives in pieces is not theirs.
  store_at(client, global_note(alice, std::string(60'000, 'x')));
  hostile.clear();
  EXPECT_TRUE(rig.await_metric(kUnfinished, 0));
}

TEST_F(AbuseTest, FramesWithNothingInThem) {
  const RelayRig rig(limits({}));
  NostrClient client(rig.url());
  auto hostile = HostileClient::websocket(rig.port(), "127.0.0.2");
  std::string frames;
  net::append_frame(frames, 0x01, "[", net::Masking::random);
  for (int i = 0; i < 200'000; ++i) net::append_frame(frames, 0x00, "", net::Masking::random);
  hostile.write(frames);
  EXPECT_THAT(hostile.read_to_end(), HasSubstr("message of too many frames"));
  expect_service(client);
}

TEST_F(AbuseTest, DeflateBombs) {
  const RelayRig rig(limits({}));
  NostrClient client(rig.url());
  expect_service(client);
  std::string bomb;
  net::append_frame(bomb, 0xc1, net::deflate_message(std::string(64 * 1024 * 1024, ' ')),
                    net::Masking::random);
  std::string smaller;  // as large as a frame may be: it is refused as a message
  net::append_frame(smaller, 0xc1, net::deflate_message(std::string(1024 * 1024, ' ')), net::Masking::random);
  const auto before = memory_mib();
  std::vector<HostileClient> hostile;
  for (int i = 0; i < 50; ++i) {
    hostile.push_back(HostileClient::websocket(rig.port(), "127.0.0.2"));
    for (int n = 0; n < 3; ++n) hostile.back().write(smaller);
    hostile.back().write(bomb);
  }
  expect_service(client);
  for (auto& one : hostile) EXPECT_THAT(one.read_to_end(), HasSubstr("message too big"));
  EXPECT_LT(memory_mib() - before, 400) << "fifty bombs are 3,200 MiB";
  expect_service(client);
}

TEST_F(AbuseTest, GarbageInARow) {
  const RelayRig rig(limits({}));
  NostrClient client(rig.url());
  std::vector<HostileClient> hostile;
  for (int i = 0; i < 10; ++i) {
    hostile.push_back(HostileClient::websocket(rig.port(), "127.0.0.2"));
    for (int n = 0; n < 200; ++n) hostile.back().send("[[[[[[[[[[");
  }
  expect_service(client);
  for (auto& one : hostile) EXPECT_THAT(one.read_to_end(), HasSubstr("can't be understood"));
  EXPECT_TRUE(rig.await_metric(R"(todoke_ws_closed_total{code="1008"})", 10));
  expect_service(client);
}

TEST_F(AbuseTest, MessagesFarBeyondTheRate) {
  auto flags = limits({});
  flags[1].second = "30";
  flags[2].second = "30";
  const RelayRig rig(flags);
  NostrClient client(rig.url());
  expect_service(client);
  auto hostile = HostileClient::websocket(rig.port(), "127.0.0.2");
  const auto event = fmt::format(R"(["EVENT",{}])", global_note(alice, "again and again").json());
  ASSERT_TRUE(hostile.send(event));
  for (std::string got; got.find(R"(["OK",)") == std::string::npos;) got += hostile.read_some();
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(hostile.send(event));
  EXPECT_TRUE(await([&] { return rig.metric("todoke_ws_slowed_total") >= 1; }));
  expect_service(client);
  EXPECT_LT(rig.metric(R"(todoke_rate_limited_total{verb="event"})"), 900) << "most of them were not read";
}

TEST_F(AbuseTest, ClientsThatTakeNoneOfTheirPages) {
  const RelayRig rig(limits({{"relay.send_timeout", "1s"}, {"relay.compression", "off"}}));
  NostrClient client(rig.url(), large_messages());
  for (int i = 0; i < 40; ++i)
    store_at(client, global_note(alice, std::to_string(i) + std::string(60'000, 'x')));
  std::vector<HostileClient> hostile;
  constexpr int kHostile = 10;
  for (int i = 0; i < kHostile; ++i) {
    hostile.push_back(HostileClient::websocket(rig.port(), "127.0.0.2"));
    for (int n = 0; n < 50; ++n) hostile.back().send(fmt::format(R"(["REQ","{}",{}])", n, kGlobal));
  }
  EXPECT_TRUE(await([&] { return rig.metric("todoke_page_bytes") > 0; }));
  const auto event = global_note(alice, "well-behaved");
  store_at(client, event);
  EXPECT_THAT(client.stored(by_id(event)).ids, ElementsAre(hex_of(event)));
  EXPECT_LE(rig.metric("todoke_page_bytes"), kHostile * 6 * 2.0 * 1024 * 1024) << "four pages each, and two";
  // The sockets take nothing: the relay lets go of them, and of all that waited.
  EXPECT_TRUE(rig.await_metric("todoke_ws_slow_closed_total", kHostile));
  EXPECT_TRUE(rig.await_metric("todoke_page_bytes", 0));
  EXPECT_TRUE(rig.await_metric("todoke_ws_subscriptions", 0));
}

TEST_F(AbuseTest, ReadsOfClientsThatHaveGoneAreCancelledOnTheServer) {
  const RelayRig rig(limits({{"relay.query_timeout", "60s"}}));
  SqlSession blocker(rig.database()->url());
  blocker.run("BEGIN");
  blocker.run("LOCK TABLE cn_relay.event_topics IN ACCESS EXCLUSIVE MODE");
  {
    NostrClient greedy(rig.url());
    for (int i = 0; i < 4; ++i) {
      greedy.send(fmt::format(R"(["REQ","r{}",{}])", i, global_and(R"("kinds":[1],"seq_after":0)")));
      greedy.send(fmt::format(R"(["COUNT","c{}",{}])", i, kGlobal));
    }
    EXPECT_TRUE(await([&] {
      return rig.metric("todoke_reads_under_way") > 0 && rig.metric("todoke_counts_under_way") > 0;
    }));
  }
  // The lock is held still.
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 0));
  EXPECT_TRUE(rig.await_metric("todoke_counts_under_way", 0));
  EXPECT_GE(rig.metric("todoke_reads_interrupted_total"), 2);
  rig.await_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      {"0"});
  EXPECT_EQ(rig.metric(R"(todoke_query_failed_total{reason="query_too_slow"})"), 0);
  blocker.run("ROLLBACK");
  NostrClient client(rig.url());
  expect_service(client);
}

TEST_F(AbuseTest, SubscriptionAndCountThatAreClosedGiveTheirReadsBack) {
  const RelayRig rig(limits({{"relay.query_timeout", "60s"}}));
  SqlSession blocker(rig.database()->url());
  blocker.run("BEGIN");
  blocker.run("LOCK TABLE cn_relay.event_topics IN ACCESS EXCLUSIVE MODE");
  NostrClient client(rig.url());
  client.send(fmt::format(R"(["REQ","r",{}])", global_and(R"("kinds":[1],"seq_after":0)")));
  client.send(fmt::format(R"(["COUNT","c",{}])", kGlobal));
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 1));
  EXPECT_TRUE(rig.await_metric("todoke_counts_under_way", 1));
  client.send(R"(["CLOSE","r"])");
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 0));
  client.send(R"(["CLOSE","c"])");
  EXPECT_TRUE(rig.await_metric("todoke_counts_under_way", 0));
  EXPECT_EQ(rig.metric("todoke_filter_bytes"), 0);
  blocker.run("ROLLBACK");
  expect_service(client);
}

}  // namespace
}  // namespace todoke::test
