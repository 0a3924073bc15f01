#include "base/group_committer.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace todoke {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

struct Refused : std::runtime_error {
  Refused() : std::runtime_error("refused") {}
};
struct Lost : std::runtime_error {
  Lost() : std::runtime_error("the connection was lost") {}
};

struct Item {
  std::string text;
  SteadyTime until;
};
using Committer = GroupCommitter<Item>;
using Texts = std::vector<std::string>;

// Commits into a list. An item that begins with "bad" spoils its batch.
class Ledger final : public Committer::Work {
 public:
  Committer::Items next_batch(std::deque<Item>& queue) override {
    Committer::Items batch;
    while (!queue.empty() && batch.size() < batch_max) {
      batch.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return batch;
  }
  Task<void> commit(Committer::Items& batch) override {
    tries.push_back(batch.size());
    on_try();
    const auto is_bad = [](const Item& item) { return item.text.starts_with("bad"); };
    if (losses > 0) {
      --losses;
      throw Lost();
    }
    if (std::any_of(batch.begin(), batch.end(), is_bad)) throw Refused();
    for (auto& item : batch) committed.push_back(item.text);
    co_return;
  }
  [[nodiscard]] bool refuses_data(const std::exception_ptr& failure) const override {
    return describe(failure) == "refused";
  }
  Task<void> mend(std::exception_ptr, Committer::Items&) override {
    ++mended;
    co_return;
  }
  [[nodiscard]] SteadyTime patience_ends(const Item& item) const override { return item.until; }
  void fail(Item& item, CommitFailure why, const std::exception_ptr&) override {
    switch (why) {
      case CommitFailure::queue_full:
        return full.push_back(item.text);
      case CommitFailure::refused:
        return refused.push_back(item.text);
      case CommitFailure::overdue:
        return overdue.push_back(item.text);
    }
  }
  Task<void> between_batches() override {
    ++betweens;
    co_return;
  }

  std::size_t batch_max = 100;
  int losses = 0;  // commits that fail
  std::function<void()> on_try = [] {};
  std::vector<std::size_t> tries;
  Texts committed;
  Texts full;
  Texts refused;
  Texts overdue;
  int mended = 0;
  int betweens = 0;
};

class GroupCommitterTest : public testing::Test {
 protected:
  void make(GroupCommitOptions options) {
    options.retry_first = 1ms;
    options.retry_most = 1ms;
    committer = std::make_unique<Committer>(io.get_executor(), options, ledger, clock,
                                            registry.gauge("waiting", "Items."),
                                            registry.counter("tries_total", "Tries."));
  }
  void offer(const Texts& texts, std::chrono::milliseconds patience = 5s) {
    for (const auto& text : texts) committer->offer({text, clock.steady() + patience});
  }
  // Commits what is queued, and what comes meanwhile.
  void run_to_end() {
    committer->stop();
    bool ended = false;
    asio::co_spawn(io, committer->run(), [&](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      ended = true;
    });
    io.run();
    EXPECT_TRUE(ended);
  }
  double waiting() { return registry.gauge("waiting", "Items.").value(); }
  std::uint64_t retries() { return registry.counter("tries_total", "Tries.").value(); }

  asio::io_context io;
  ManualClock clock;
  metrics::Registry registry;
  Ledger ledger;
  std::unique_ptr<Committer> committer;
};

TEST_F(GroupCommitterTest, WhatHasQueuedIsCommittedTogetherInItsOrder) {
  make({});
  ledger.batch_max = 2;
  offer({"a", "b", "c"});
  EXPECT_EQ(waiting(), 3);
  run_to_end();
  EXPECT_THAT(ledger.committed, ElementsAre("a", "b", "c"));
  EXPECT_THAT(ledger.tries, ElementsAre(2U, 1U));
  EXPECT_EQ(ledger.betweens, 2);
  EXPECT_EQ(waiting(), 0);
}

TEST_F(GroupCommitterTest, ItemThatComesWhileNobodyWorksWakesTheLoop) {
  make({});
  asio::co_spawn(io, committer->run(), asio::detached);
  io.poll();
  EXPECT_THAT(ledger.tries, IsEmpty());
  ledger.on_try = [&] { committer->stop(); };
  std::thread([&] { offer({"a"}); }).join();
  io.restart();
  io.run();
  EXPECT_THAT(ledger.committed, ElementsAre("a"));
}

TEST_F(GroupCommitterTest, QueueIsBounded) {
  make({.queue_max = 2});
  offer({"a", "b", "c"});
  EXPECT_THAT(ledger.full, ElementsAre("c"));
  run_to_end();
  EXPECT_THAT(ledger.committed, ElementsAre("a", "b"));
}

TEST_F(GroupCommitterTest, CallerIsAskedToPauseAndToldWhenHalfIsLeft) {
  make({.queue_max = 10, .queue_high = 4});
  ledger.batch_max = 1;
  offer({"1", "2", "3", "4"});
  int told = 0;
  EXPECT_FALSE(committer->offer({"5", clock.steady() + 5s}, [&] { ++told; }));
  std::vector<int> told_at_try;
  ledger.on_try = [&] { told_at_try.push_back(told); };
  run_to_end();
  EXPECT_THAT(told_at_try, ElementsAre(0, 0, 1, 1, 1));
}

TEST_F(GroupCommitterTest, ItemThatTheDatabaseRefusesFailsAloneAndTheOrderStays) {
  make({});
  offer({"a", "b", "bad", "c", "d", "e", "f", "g"});
  run_to_end();
  EXPECT_THAT(ledger.committed, ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  EXPECT_THAT(ledger.refused, ElementsAre("bad"));
  EXPECT_THAT(ledger.tries, ElementsAre(8U, 4U, 2U, 2U, 1U, 1U, 4U));
  EXPECT_EQ(retries(), 1U);
}

TEST_F(GroupCommitterTest, BatchIsCommittedAgainAfterALostConnection) {
  make({});
  ledger.losses = 2;
  offer({"a", "b"});
  run_to_end();
  EXPECT_THAT(ledger.committed, ElementsAre("a", "b"));
  EXPECT_THAT(ledger.tries, ElementsAre(2U, 2U, 2U));
  EXPECT_EQ(ledger.mended, 2);
  EXPECT_EQ(retries(), 2U);
}

TEST_F(GroupCommitterTest, ItemWhosePatienceIsOverFailsAndTheRestGoesOn) {
  make({});
  ledger.losses = 1;
  ledger.batch_max = 2;
  offer({"a"}, 1s);
  offer({"b"}, 3s);
  offer({"queued and late"}, 1s);
  offer({"c"}, 3s);
  ledger.on_try = [&] {
    if (ledger.losses > 0) clock.advance(2s);
  };
  run_to_end();
  EXPECT_THAT(ledger.overdue, ElementsAre("a", "queued and late"));
  EXPECT_THAT(ledger.committed, ElementsAre("b", "c"));
  EXPECT_EQ(waiting(), 0);
}

TEST_F(GroupCommitterTest, PatienceIsNotLookedAtWhileCommitsSucceed) {
  make({});
  offer({"late"}, 1s);
  clock.advance(2s);
  run_to_end();
  EXPECT_THAT(ledger.committed, ElementsAre("late"));
}

}  // namespace
}  // namespace todoke
