// Processes that end in the middle of a pipelined load: the relay's, the database's, one connection's.
// Whatever got an OK is there, once, and the log agrees; and nobody has to help.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"
#include "faults/subscriber.hpp"

namespace todoke::test {
namespace {

using testing::IsEmpty;

constexpr std::size_t kPublishers = 4;
constexpr std::size_t kEventsEach = 1'000;
// The moment of a fault: before so many OKs, of the 4,000.
constexpr std::size_t kLatest = 2'500;

class Moments {
 public:
  Moments() { std::cout << "seed " << seed_ << "\n"; }
  std::size_t next() { return std::uniform_int_distribution<std::size_t>(1, kLatest)(engine_); }

 private:
  std::random_device::result_type seed_ = std::random_device()();
  std::mt19937 engine_{seed_};
};

std::set<std::string> without(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
  return rest;
}

struct Killed : testing::Test {
  TempFolder folder;
  Moments moments;
  std::set<std::string> accepted;  // of all rounds

  void expect_all_there() {
    SqlSession database(conninfo_of(folder.path()));
    EXPECT_THAT(without(accepted, stored_ids(database)), IsEmpty()) << "an OK was not true";
    EXPECT_EQ(problems_in_store(database), "");
  }

  [[nodiscard]] pid_t postmaster() const {
    std::ifstream file(folder.path() / "postgres/postmaster.pid");
    pid_t pid = 0;
    file >> pid;
    return pid;
  }
};

TEST_F(Killed, ARelayThatIsKilledHasStoredWhatItAcknowledged) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    RelayProcess relay(folder.path());
    if (round > 0) expect_all_there();
    Load load(relay.public_address(), kPublishers, kEventsEach);
    load.wait_until_accepted(moments.next());
    relay.process().kill(SIGKILL);
    relay.process().wait();
    const auto outcome = load.finish();
    EXPECT_THAT(outcome.odd, IsEmpty());
    EXPECT_GT(outcome.unanswered, 0U) << "the load was over before the relay was";
    accepted.insert(outcome.accepted.begin(), outcome.accepted.end());
  }
  RelayProcess relay(folder.path());
  expect_all_there();
  expect_serves(relay);
}

TEST_F(Killed, ARelayThatIsStoppedHasStoredWhatItAcknowledged) {
  {
    RelayProcess relay(folder.path());
    Load load(relay.public_address(), kPublishers, kEventsEach);
    load.wait_until_accepted(moments.next());
    relay.process().kill(SIGTERM);
    EXPECT_EQ(relay.process().wait().code, 0);
    const auto outcome = load.finish();
    EXPECT_THAT(outcome.odd, IsEmpty());
    accepted = outcome.accepted;
  }
  RelayProcess relay(folder.path());
  expect_all_there();
  expect_serves(relay);
}

TEST_F(Killed, ADatabaseThatIsKilledCostsNoEventAndNoRestartOfTheRelay) {
  RelayProcess relay(folder.path());
  LiveSubscriber subscriber(relay.url(), R"({"#t":["kukuri:global"],"limit":0})");
  const auto writer = [&] {
    return static_cast<pid_t>(std::stoi(SqlSession(conninfo_of(folder.path()))
                                            .value("SELECT pid FROM pg_stat_activity "
                                                   "WHERE application_name = 'todoke writer'")));
  };
  const std::vector<std::pair<std::string, std::function<pid_t()>>> victims{
      {"the writer's backend", writer},
      {"the postmaster", [&] { return postmaster(); }},
      {"the writer's backend", writer},
  };
  for (const auto& [name, victim] : victims) {
    SCOPED_TRACE(name);
    Load load(relay.public_address(), kPublishers, kEventsEach);
    load.wait_until_accepted(moments.next());
    const auto pid = victim();
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const auto outcome = load.finish();
    EXPECT_THAT(outcome.odd, IsEmpty());
    EXPECT_EQ(outcome.unanswered, 0U) << "every EVENT gets its OK";
    EXPECT_THAT(outcome.failures, IsEmpty());
    accepted.insert(outcome.accepted.begin(), outcome.accepted.end());
    expect_serves(relay);
    expect_all_there();
    const auto last = make_notes(1).front();
    ASSERT_TRUE(NostrClient(relay.url()).publish(last).accepted);
    subscriber.wait_for(last.id().hex());
    SqlSession database(conninfo_of(folder.path()));
    auto delivered = subscriber.ids();
    std::sort(delivered.begin(), delivered.end());
    const auto stored = stored_ids(database);
    EXPECT_TRUE(std::equal(delivered.begin(), delivered.end(), stored.begin(), stored.end()))
        << delivered.size() << " live for " << stored.size() << " stored: not everything was delivered once";
  }
}

// The postmaster and all that it has started.
std::vector<pid_t> with_children(pid_t pid) {
  std::vector<pid_t> all{pid};
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  for (pid_t child = 0; file >> child;) all.push_back(child);
  return all;
}

TEST_F(Killed, ADatabaseThatHangsLeavesNoEventWithoutAnAnswer) {
  RelayProcess relay(folder.path());
  const auto stopped = with_children(postmaster());
  ASSERT_GT(stopped.size(), 1U);
  for (const auto pid : stopped) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  // Many batches: each by itself would wait as long as the first.
  Load load(relay.public_address(), 10, 200);
  const auto outcome = load.finish();
  for (const auto pid : stopped) EXPECT_EQ(::kill(pid, SIGCONT), 0);
  EXPECT_EQ(outcome.unanswered, 0U);
  EXPECT_THAT(outcome.odd, IsEmpty());
  EXPECT_EQ(outcome.refused.size(), 2'000U);
  accepted = outcome.accepted;
  expect_serves(relay);
  expect_all_there();
}

}  // namespace
}  // namespace todoke::test
