// A subscriber that stops reading is closed, and the others get every event meanwhile.
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"
#include "faults/subscriber.hpp"
#include "websocket/raw_client.hpp"

namespace todoke::test {
namespace {

constexpr std::size_t kStepEvents = 50;
constexpr std::size_t kEventBytes = 8 * 1024;
// 40 MB: more than the buffers of both kernels take.
constexpr std::size_t kStepsMax = 100;

struct SlowSubscriber : testing::Test {
  TempFolder folder;

  // Subscribes and never reads again.
  static std::unique_ptr<net::RawClient> sleeper(RelayProcess& relay) {
    auto client = std::make_unique<net::RawClient>(port_of(relay.public_address()));
    const int bytes = 4'096;
    ::setsockopt(client->fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    client->read();  // the challenge
    client->send(net::text(std::string(R"(["REQ","slow",)") + kOnlyLive + "]"));
    client->read();  // EOSE
    return client;
  }

  // Publishes until the relay says `closed`; a good subscriber follows step by step.
  static void publish_until(RelayProcess& relay, const std::function<bool()>& closed) {
    LiveSubscriber good(relay.url(), kOnlyLive);
    std::vector<std::string> sent;
    std::size_t steps = 0;
    for (bool is_closed = false; !is_closed || steps < 2; ++steps) {
      ASSERT_LT(steps, kStepsMax) << "it was never closed";
      auto events = make_notes(kStepEvents, kEventBytes);
      for (const auto& event : events) sent.push_back(event.id().hex());
      Publisher publisher(relay.public_address(), std::move(events));
      publisher.finish();
      ASSERT_EQ(publisher.accepted(), kStepEvents);
      good.wait_for(sent.back());
      is_closed = closed();
    }
    EXPECT_EQ(good.ids(), sent) << "every event, once, in the order of the log";
  }
};

TEST_F(SlowSubscriber, IsClosedWhenTooMuchWaitsForIt) {
  RelayProcess relay(folder.path(), {"--relay.send_queue_bytes_max", "2MiB", "--relay.send_timeout", "30s"});
  const auto slow = sleeper(relay);
  publish_until(relay, [&] { return relay.metric("todoke_ws_slow_closed_total") > 0; });
  EXPECT_EQ(relay.metric("todoke_ws_slow_closed_total"), 1);
}

TEST_F(SlowSubscriber, IsClosedWhenAWriteTakesTooLong) {
  RelayProcess relay(folder.path(),
                     {"--relay.send_queue_bytes_max", "1GiB", "--relay.send_timeout", "500ms"});
  const auto slow = sleeper(relay);
  // Only the good one is left: publishers come and go.
  publish_until(relay, [&] { return relay.metric("todoke_ws_connections") == 1; });
  EXPECT_EQ(relay.metric("todoke_ws_slow_closed_total"), 1);
}

}  // namespace
}  // namespace todoke::test
