// Load from the public leaves a node room for orders and for its operator.
#include <algorithm>
#include <memory>
#include <sched.h>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/metric.hpp"
#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

struct Rooms : testing::Test {
  TempFolder folder;
};

// Until it is dropped, nobody can read the links of events to topics.
class LockedTopics {
 public:
  LockedTopics(const std::filesystem::path& folder, TodokeUp& node)
      : session_({todoke_binary(), "psql", "-X", "-c",
                  "BEGIN; LOCK TABLE cn_relay.event_topics; SELECT pg_sleep(600)"},
                 {"TODOKE_DATA_DIR=" + folder.string()}) {
    wait_until("the lock", [&] {
      return node.sql(
                 "SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' "
                 "AND relation = 'cn_relay.event_topics'::regclass") == "1";
    });
  }

 private:
  ChildProcess session_;
};

std::string settled(const std::string& address, const std::string& key) {
  const auto posted = run_command(
      {"curl", "-sS", "--noproxy", "*", "-f", "-H", "Content-Type: application/json", "-H",
       "Idempotency-Key: " + key, "-d",
       R"({"instrument":"BTC-USD","side":"BUY","qty":1,"time_in_force":"IOC","idempotency_key":")" + key +
           R"("})",
       "http://" + address + "/do/order"});
  if (posted.code != 0) return "not accepted: " + posted.err;
  return http_get(fmt::format("http://{}/do/order/{}?wait=20s", address, key)).body;
}

// More COUNTs and REQs than the node has connections, none of which can end.
std::vector<std::unique_ptr<NostrClient>> ask_in_vain(const std::string& address) {
  constexpr int kClients = 8;
  constexpr int kQuestions = 8;
  std::vector<std::unique_ptr<NostrClient>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<NostrClient>("ws://" + address + "/relay"));
    for (int n = 0; n < kQuestions; ++n) {
      clients.back()->send(fmt::format(R"(["COUNT","count-{}",{{"#t":["kukuri:global"]}}])", n));
      clients.back()->send(fmt::format(R"(["REQ","req-{}",{{"#t":["kukuri:global"],"until":{}}}])", n, n));
    }
  }
  return clients;
}

TEST_F(Rooms, OrdersSettleAndHealthAnswersWhileEveryReadForThePublicHangs) {
  TodokeUp node(folder.path(), {"--limits.rates", "off", "--relay.query_timeout", "60s"});
  node.wait_ready();
  const LockedTopics locked(folder.path(), node);
  const auto clients = ask_in_vain(node.public_address());
  wait_until("reads that hang", [&] {
    return node.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
               "AND query LIKE '%topic_links%'") != "0";
  });
  EXPECT_THAT(settled(node.public_address(), "beside-readers-1"), HasSubstr(R"("succeeded")"));
  EXPECT_THAT(settled(node.public_address(), "beside-readers-2"), HasSubstr(R"("succeeded")"));
  const auto health = http_get("http://" + node.internal_address() + "/healthz");
  EXPECT_THAT(health.body, HasSubstr(R"({"name":"database","state":"up","essential":true})"));
}

TEST_F(Rooms, TheSharesOfThePoolAreWhatItMayOpenInAll) {
  TodokeUp node(folder.path(), {"--limits.rates", "off", "--database.pool_max", "8"});
  node.wait_ready();
  const LockedTopics locked(folder.path(), node);
  const auto clients = ask_in_vain(node.public_address());
  const auto connections = [&](const std::string& pool) {
    const auto text = http_get("http://" + node.internal_address() + "/metrics").body;
    return metric_in(text, fmt::format(R"(todoke_pg_pool_connections{{pool="{}",state="busy"}})", pool));
  };
  // One for control, three for the background, what is left for orders and for reads.
  EXPECT_TRUE(await([&] { return connections("reads").value_or(0) > 0; }));
  EXPECT_LE(connections("reads"), 2);
  EXPECT_LE(connections("orders"), 2);
  EXPECT_LE(connections("control"), 1);
  EXPECT_LE(connections("background"), 3);
}

// The rebuild has one connection for as long as it takes; its progress and the renewal of its claim need none
// of the control room's.
TEST_F(Rooms, AnIndexIsRebuiltAndOrdersSettleWithTheSmallestPool) {
  TodokeUp node(folder.path(), {"--database.pool_max", "6"});
  node.wait_ready();
  const auto rebuilt = run_command({todoke_binary(), "consumers", "rebuild", "index-v1"},
                                   {"TODOKE_DATA_DIR=" + folder.path().string()});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.err;
  EXPECT_THAT(rebuilt.out, HasSubstr("rebuilt index-v1\n"));
  EXPECT_THAT(settled(node.public_address(), "smallest-pool"), HasSubstr(R"("succeeded")"));
}

int nice_of(pid_t pid) {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(pid));
}

int processors_of(pid_t pid) {
  cpu_set_t processors;
  return sched_getaffinity(pid, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : -1;
}

TEST_F(Rooms, BackendsThatReadForThePublicYieldToThoseOfConsumersAndTheseToOrders) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto backend_of = [&](const std::string& name) {
    return std::stoi(node.sql(
        fmt::format("SELECT pid FROM pg_stat_activity WHERE application_name = 'todoke {}' LIMIT 1", name)));
  };
  const auto orders = backend_of("orders intake");
  const auto consumer = backend_of("background pool");
  const LockedTopics locked(folder.path(), node);
  const auto clients = ask_in_vain(node.public_address());
  std::string pids;
  wait_until("a read that hangs", [&] {
    pids = node.sql(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND query LIKE '%topic_links%'");
    return !pids.empty();
  });
  std::istringstream lines(pids);
  for (std::string pid; std::getline(lines, pid);) {
    EXPECT_GT(nice_of(std::stoi(pid)), nice_of(consumer));
    EXPECT_EQ(processors_of(std::stoi(pid)), std::max(1, processors_of(getpid()) - 1));
  }
  EXPECT_GT(nice_of(consumer), nice_of(orders));
  EXPECT_EQ(nice_of(orders), nice_of(getpid()));
  EXPECT_EQ(processors_of(orders), processors_of(getpid()));
}

}  // namespace
}  // namespace todoke::test
