// Clients that publish and are gone: what the relay has received is stored all the same.
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"
#include "websocket/raw_client.hpp"

namespace todoke::test {
namespace {

// About 43 KB: as much as the relay's kernel takes at once, so that nothing is left behind in the client's.
constexpr std::size_t kEventsSent = 100;
constexpr int kCloseRounds = 15;

std::string frames_of(const Events& events) {
  std::string frames;
  for (const auto& event : events) frames += event_frame(event);
  return frames;
}

struct ImmediateClose : testing::Test {
  TempFolder folder;
  RelayProcess relay{folder.path()};
  std::uint16_t port = port_of(relay.public_address());
  std::set<std::string> sent;

  Events next_events() {
    auto events = make_notes(kEventsSent);
    for (const auto& event : events) sent.insert(event.id().hex());
    return events;
  }

  // The writer takes events in their order: when one that was sent after the end of all connections is
  // stored, so is everything that was received before.
  void expect_all_stored() {
    relay.wait_for_metric("todoke_ws_connections", 0);
    NostrClient client(relay.url());
    const auto last = make_notes(1).front();
    ASSERT_TRUE(client.publish(last).accepted);
    sent.insert(last.id().hex());
    SqlSession database(conninfo_of(folder.path()));
    EXPECT_EQ(stored_ids(database), sent);
    EXPECT_EQ(problems_in_store(database), "");
  }
};

TEST_F(ImmediateClose, LosesNothingThatWasSent) {
  for (int round = 0; round < kCloseRounds; ++round) {
    net::RawClient client(port);
    client.write(frames_of(next_events()));
  }
  expect_all_stored();
}

TEST_F(ImmediateClose, LosesNothingWhenTheHandshakeWasNotEvenAwaited) {
  for (int round = 0; round < kCloseRounds; ++round) {
    net::RawClient client(port, net::RawClient::NoHandshake());
    client.write(std::string(net::kHandshake) + "\r\n" + frames_of(next_events()));
  }
  expect_all_stored();
}

// The kernel answers a close with unread bytes by a reset, so the relay's next write fails while events are
// still waiting to be read.
TEST_F(ImmediateClose, LosesNothingWhenAnswersAreLeftUnread) {
  for (int round = 0; round < kCloseRounds; ++round) {
    net::RawClient client(port);
    client.read();  // the challenge
    const auto events = next_events();
    client.write(event_frame(events.front()));
    client.wait_readable();
    client.write(frames_of(events));
  }
  expect_all_stored();
}

TEST_F(ImmediateClose, LosesNothingAfterACloseFrame) {
  for (int round = 0; round < kCloseRounds; ++round) {
    net::RawClient client(port);
    client.write(frames_of(next_events()) + net::encode(net::close_with(1000)));
  }
  expect_all_stored();
}

}  // namespace
}  // namespace todoke::test
