#include "relay/client_output.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/frame.hpp"
#include "relay/metrics.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// Remembers what was queued; its socket takes nothing by itself.
class Connection final : public net::WsConnection {
 public:
  explicit Connection(Executor executor) : executor_(std::move(executor)) {}
  void send(net::FramePtr frame) override {
    sent.emplace_back(frame->payload());
    queued += frame->payload().size();
  }
  void close(std::uint16_t code, std::string_view) override { closed = code; }
  void drain() override {}
  void pause_reading() override {}
  void resume_reading() override {}
  [[nodiscard]] bool peer_has_ended() const override { return false; }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued; }
  [[nodiscard]] bool compressed() const override { return false; }
  [[nodiscard]] Executor executor() const override { return executor_; }

  std::vector<std::string> sent;
  std::size_t queued = 0;
  std::uint16_t closed = 0;

 private:
  Executor executor_;
};

class ClientOutputTest : public testing::Test {
 protected:
  static constexpr std::size_t kEventBytes = 10'000;

  void add_page(const std::string& sub, std::size_t events) {
    output->add_page(nostr::SubId::from(sub).value(), std::vector<LiveEventPtr>(events, live), "EOSE " + sub);
  }
  void add_frame(const std::string& text) {
    output->add_frames({net::make_frame(net::WsOpcode::text, text)});
  }
  // Everything but the events.
  std::vector<std::string> others() const {
    std::vector<std::string> all;
    for (const auto& text : connection->sent) {
      if (!text.starts_with(R"(["EVENT")")) all.push_back(text);
    }
    return all;
  }

  LiveEventPtr live = std::make_shared<const LiveEvent>(
      LiveEvent{event_of(author(1), 1, {}, std::string(kEventBytes, 'x')), nostr::Seq{1}, {}, false, {}});
  asio::io_context io;
  std::shared_ptr<Connection> connection = std::make_shared<Connection>(io.get_executor());
  int pages_done = 0;
  metrics::Registry registry;
  RelayMetrics metrics{registry};
  std::shared_ptr<net::ClientMemory> memory =
      std::make_shared<net::ClientMemory>(metrics.page_bytes, metrics.pages_dropped, 200 * kEventBytes);
  std::shared_ptr<ClientOutput> output =
      std::make_shared<ClientOutput>(connection, memory, "192.0.2.1", [this] { ++pages_done; });
};

TEST_F(ClientOutputTest, LoopDoesOtherWorkBetweenTheSlicesOfAPage) {
  std::vector<std::size_t> queued_before_each;
  add_page("s", 30);
  while (others().empty()) {
    asio::post(io, [&] { queued_before_each.push_back(connection->queued); });
    ASSERT_GT(io.run_one(), 0U);
    ASSERT_GT(io.run_one(), 0U);
  }
  ASSERT_EQ(queued_before_each.size(), 4U) << "seven events make a slice";
  for (std::size_t i = 1; i < queued_before_each.size(); ++i)
    EXPECT_LE(queued_before_each[i] - queued_before_each[i - 1], ClientOutput::kSliceBytes + 2 * kEventBytes);
  EXPECT_EQ(connection->sent.size(), 31U);
  EXPECT_EQ(pages_done, 1);
}

TEST_F(ClientOutputTest, LoopDoesOtherWorkBetweenTheSlicesOfPagesOfManyClients) {
  std::vector<std::shared_ptr<Connection>> connections{connection};
  std::vector<std::shared_ptr<ClientOutput>> outputs{output};
  for (int i = 0; i < 19; ++i) {
    connections.push_back(std::make_shared<Connection>(io.get_executor()));
    outputs.push_back(std::make_shared<ClientOutput>(connections.back(), memory, "192.0.2.1", [] {}));
  }
  const auto queued = [&] {
    std::size_t bytes = 0;
    for (const auto& one : connections) bytes += one->queued;
    return bytes;
  };
  for (const auto& one : outputs)
    one->add_page(nostr::SubId::from("s").value(), std::vector<LiveEventPtr>(9, live), "EOSE s");
  std::vector<std::size_t> queued_before_each{queued()};
  std::function<void()> look = [&] {
    queued_before_each.push_back(queued());
    if (connections.back()->sent.size() < 10) asio::post(io, look);
  };
  asio::post(io, look);
  io.run();
  for (std::size_t i = 1; i < queued_before_each.size(); ++i)
    EXPECT_LE(queued_before_each[i] - queued_before_each[i - 1], ClientOutput::kSliceBytes + 2 * kEventBytes);
  for (const auto& one : connections) EXPECT_EQ(one->sent.size(), 10U);
}

TEST_F(ClientOutputTest, WhatComesBehindAPageKeepsItsPlace) {
  add_frame("before");
  add_page("a", 10);
  add_frame("live of a");
  add_page("b", 10);
  add_frame("live of b");
  EXPECT_THAT(others(), ElementsAre("before"));
  io.run();
  EXPECT_THAT(others(), ElementsAre("before", "EOSE a", "live of a", "EOSE b", "live of b"));
  EXPECT_EQ(connection->sent[11], "EOSE a");
  add_frame("at once");
  EXPECT_EQ(connection->sent.back(), "at once");
}

TEST_F(ClientOutputTest, RestOfAPageWhoseSubscriptionWasClosedIsNotSent) {
  add_page("a", 100);
  add_page("b", 1);
  output->drop_page("a");
  EXPECT_EQ(pages_done, 1);
  io.run();
  EXPECT_THAT(others(), ElementsAre("EOSE b"));
  EXPECT_LT(connection->sent.size(), 20U);
  EXPECT_EQ(pages_done, 2);
}

TEST_F(ClientOutputTest, PageIsHeldUntilTheSocketHasTakenIt) {
  add_page("s", 30);
  io.run();
  EXPECT_GE(metrics.page_bytes.value(), 30 * kEventBytes);
  const auto bytes = connection->queued;
  connection->queued = 10;
  output->written(bytes - 10);
  EXPECT_GE(metrics.page_bytes.value(), 30 * kEventBytes);
  connection->queued = 0;
  output->written(10);
  EXPECT_EQ(metrics.page_bytes.value(), 0);
  add_page("s", 30);
  output->drop_page("s");
  add_page("t", 1);
  output->end();
  EXPECT_EQ(metrics.page_bytes.value(), 0);
}

TEST_F(ClientOutputTest, NewcomerDoesNotPayForOneWhoHoldsMost) {
  const auto modest_connection = std::make_shared<Connection>(io.get_executor());
  const auto modest = std::make_shared<ClientOutput>(modest_connection, memory, "192.0.2.2", [] {});
  for (int i = 0; i < 100; ++i) modest->add_page(nostr::SubId::from("e").value(), {}, "EOSE");
  add_page("s", 150);
  io.run();
  EXPECT_EQ(connection->closed, 0);
  modest->add_page(nostr::SubId::from("m").value(), std::vector<LiveEventPtr>(60, live), "EOSE");
  io.restart();
  io.run();
  EXPECT_EQ(connection->closed, 1008);
  EXPECT_EQ(modest_connection->closed, 0);
  EXPECT_EQ(metrics.pages_dropped.value(), 1U);
  // What the closed one still holds does not cost another its connection.
  modest->add_page(nostr::SubId::from("n").value(), std::vector<LiveEventPtr>(60, live), "EOSE");
  io.restart();
  io.run();
  EXPECT_EQ(modest_connection->closed, 0);
  output->end();
  modest->end();
  EXPECT_EQ(metrics.page_bytes.value(), 0);
}

TEST_F(ClientOutputTest, ClientHoldsWhatAllItsConnectionsHold) {
  std::vector<std::shared_ptr<Connection>> connections;
  std::vector<std::shared_ptr<ClientOutput>> outputs;
  for (int i = 0; i < 4; ++i) {
    connections.push_back(std::make_shared<Connection>(io.get_executor()));
    outputs.push_back(std::make_shared<ClientOutput>(connections.back(), memory, "192.0.2.2", [] {}));
    outputs.back()->add_page(nostr::SubId::from("m").value(),
                             std::vector<LiveEventPtr>(i == 2 ? 35 : 30, live), "");
  }
  add_page("s", 80);
  io.run();
  EXPECT_EQ(connection->closed, 0) << "no connection has more, and the other client has";
  for (std::size_t i = 0; i < connections.size(); ++i)
    EXPECT_EQ(connections[i]->closed, i == 2 ? 1008 : 0) << i;
}

TEST_F(ClientOutputTest, NothingIsSentAfterTheEnd) {
  add_page("a", 100);
  const auto before = connection->sent.size();
  output->end();
  io.run();
  add_page("b", 1);
  add_frame("late");
  output->drop_page("a");
  EXPECT_EQ(connection->sent.size(), before);
}

TEST_F(ClientOutputTest, PageIsDoneWhenTheSocketHasTakenEnoughOfIt) {
  add_page("a", 150);
  io.run();
  EXPECT_EQ(pages_done, 0);
  const auto too_much = connection->queued - ClientOutput::kPageRoomBytes;
  output->written(too_much - 1);
  EXPECT_EQ(pages_done, 0);
  output->written(1);
  EXPECT_EQ(pages_done, 1);
}

TEST_F(ClientOutputTest, TooManyFramesBehindAPageMakeItGoOutAtOnce) {
  add_page("a", 100);
  for (std::size_t i = 0; i < ClientOutput::kWaitingMax; ++i) add_frame("live");
  EXPECT_THAT(others().front(), StartsWith("EOSE a"));
  io.run();
  EXPECT_EQ(others().size(), ClientOutput::kWaitingMax + 1);
}

}  // namespace
}  // namespace todoke::relay::test
