// Limits, slow peers, sharing, time.
#include <atomic>
#include <poll.h>

#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "net/frame.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

// Keeps its connection where the test finds it. Everything but `ends` is touched on the server's thread only.
struct Room {
  std::vector<std::shared_ptr<WsConnection>> open;
  std::vector<std::string> received;
  std::atomic<int> opened{0};
  std::promise<std::uint16_t> first_end;
  int ends = 0;
};

class Member : public WsHandler {
 public:
  explicit Member(Room& room) : room_(room) {}
  void on_open(const std::shared_ptr<WsConnection>& connection) override {
    connection_ = connection;
    room_.open.push_back(connection);
    ++room_.opened;
  }
  void on_message(WsOpcode, std::string_view payload) override {
    room_.received.emplace_back(payload);
    if (payload == "pause") connection_->pause_reading();
    connection_->send_text("got " + std::string(payload));
  }
  void on_close(std::uint16_t code, std::string_view) override {
    std::erase(room_.open, connection_);
    if (room_.ends++ == 0) room_.first_end.set_value(code);
    connection_ = nullptr;
  }

 private:
  Room& room_;
  std::shared_ptr<WsConnection> connection_;
};

WsTestServer::MakeHandler members_of(Room& room) {
  return [&room] { return std::make_shared<Member>(room); };
}

void wait_until(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the condition never came true");
    std::this_thread::yield();
  }
}

std::uint16_t only_code(std::uint16_t port, const std::vector<RawFrame>& frames) {
  const auto answered = exchange(port, frames);
  return answered.size() == 1 ? code_of(answered[0]) : std::uint16_t{0};
}

TEST(WebSocketLimits, AMessageAboveTheLimitIsRefusedAndOneAtTheLimitIsNot) {
  WsOptions options;
  options.message_bytes_max = 1000;
  WsTestServer server(options);
  EXPECT_EQ(only_code(server.port(), {text(std::string(1001, 'x'))}), 1009);
  EXPECT_EQ(only_code(server.port(), {binary(std::string(100'000, 'x'))}), 1009);
  RawClient client(server.port());
  client.send(text(std::string(1000, 'x')));
  EXPECT_EQ(client.read(), text(std::string(1000, 'x')));
}

TEST(WebSocketLimits, AnAnnouncedLengthIsRefusedBeforeItsBytesCome) {
  WsTestServer server;
  RawClient client(server.port());
  client.write(std::string("\x82\xff\x00\x00\x7f\xff\xff\xff\xff\xff\x01\x02\x03\x04z", 15));
  EXPECT_EQ(code_of(client.read().value()), 1009);
}

TEST(WebSocketLimits, FragmentsCountTogether) {
  WsOptions options;
  options.message_bytes_max = 1000;
  WsTestServer server(options);
  const RawFrame start{false, 0, kText, std::string(600, 'x')};
  EXPECT_EQ(only_code(server.port(), {start, RawFrame{false, 0, kContinuation, std::string(401, 'x')}}),
            1009);
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.send(start);
    client.send(RawFrame{true, 0, kContinuation, std::string(400, 'x')});
    EXPECT_EQ(client.read(), text(std::string(1000, 'x')));
  }
}

TEST(WebSocketLimits, LargeMessagesPassWhenTheLimitIsRaised) {
  WsOptions options;
  options.message_bytes_max = 4 * 1024 * 1024;
  WsTestServer server(options);
  const std::string payload(1024 * 1024, 'm');
  for (const std::size_t fragment : {64UL, 1000UL, 65536UL, 1024UL * 1024}) {
    RawClient client(server.port());
    std::string bytes;
    for (std::size_t at = 0; at < payload.size(); at += fragment) {
      const bool last = at + fragment >= payload.size();
      bytes += encode(RawFrame{last, 0, at == 0 ? kText : kContinuation, payload.substr(at, fragment)});
    }
    client.write(bytes);
    EXPECT_EQ(client.read(), text(payload)) << "fragments of " << fragment;
  }
}

TEST(WebSocketSlowPeer, IsClosedAndOthersDoNotNotice) {
  Room room;
  WsOptions options;
  options.queue_bytes_max = 512 * 1024;
  options.write_timeout = std::chrono::seconds(2);
  WsTestServer server(options, members_of(room));
  RawClient slow(server.port());
  RawClient quick(server.port());
  wait_until([&] { return room.opened == 2; });

  const std::string payload(64 * 1024, 's');
  std::size_t queued_most = 0;
  int sent = 0;
  while (server.metrics().slow_closed.value() == 0 && sent < 2000) {
    server.run([&] {
      const FramePtr frame = make_frame(WsOpcode::text, payload);
      for (const auto& connection : room.open) {
        connection->send(frame);
        queued_most = std::max(queued_most, connection->queued_bytes());
      }
    });
    ++sent;
    ASSERT_EQ(quick.read(), text(payload));
  }
  EXPECT_EQ(server.metrics().slow_closed.value(), 1U);
  EXPECT_LE(queued_most, options.queue_bytes_max + 64);
  EXPECT_EQ(await(room.first_end.get_future()), 1008);
  server.run([&] { room.open.at(0)->send_text("still served"); });
  EXPECT_EQ(quick.read(), text("still served"));
}

TEST(WebSocketSlowPeer, IsCutWithoutACloseFrameAndCountedWhenAWriteTakesTooLong) {
  Room room;
  WsOptions options;
  options.queue_bytes_max = 1024 * 1024 * 1024;
  options.write_timeout = std::chrono::milliseconds(100);
  WsTestServer server(options, members_of(room));
  const RawClient slow(server.port());
  wait_until([&] { return room.opened == 1; });
  // More than the buffers of both sockets take.
  server.run([&] {
    const FramePtr frame = make_frame(WsOpcode::text, std::string(64 * 1024, 's'));
    const auto connection = room.open.at(0);
    for (int i = 0; i < 1'000; ++i) connection->send(frame);
  });
  EXPECT_EQ(await(room.first_end.get_future()), 1006);
  EXPECT_EQ(server.metrics().slow_closed.value(), 1U);
}

TEST(WebSocketSlowPeer, ThatReadsAgainInTimeGetsTheCloseFrame) {
  Room room;
  WsOptions options;
  options.queue_bytes_max = 512 * 1024;
  WsTestServer server(options, members_of(room));
  RawClient slow(server.port());
  wait_until([&] { return room.opened == 1; });
  server.run([&] {
    const FramePtr frame = make_frame(WsOpcode::text, std::string(64 * 1024, 's'));
    const auto connection = room.open.at(0);
    for (int i = 0; i < 100; ++i) connection->send(frame);
  });
  std::optional<RawFrame> frame;
  do {
    frame = slow.read();
  } while (frame && frame->opcode == kText);
  ASSERT_TRUE(frame);
  EXPECT_EQ(code_of(*frame), 1008);
}

// Writes the bytes one by one until the server has something to say.
std::uint16_t code_after_dripping(std::uint16_t port, const std::string& bytes) {
  RawClient client(port);
  for (const char byte : bytes) {
    pollfd answer{client.fd(), POLLIN, 0};
    if (::poll(&answer, 1, 1) > 0) break;
    client.write(std::string(1, byte));
  }
  const auto frame = client.read();
  return frame ? code_of(*frame) : std::uint16_t{0};
}

TEST(WebSocketSlowPeer, MessageThatDripsInIsEndedAfterItsTime) {
  WsOptions options;
  options.message_timeout = std::chrono::milliseconds(100);
  WsTestServer server(options);
  EXPECT_EQ(code_after_dripping(server.port(), encode(text(std::string(100'000, 'd')))), 1008);
  std::string fragments = encode(RawFrame{false, 0, kText, ""});
  for (int i = 0; i < 10'000; ++i) fragments += encode(RawFrame{false, 0, kContinuation, ""});
  EXPECT_EQ(code_after_dripping(server.port(), fragments), 1008);
  EXPECT_EQ(server.metrics().late_messages.value(), 2U);
}

TEST(WebSocketSlowPeer, HeaderOfAFrameThatNeverEndsIsAMessageToo) {
  WsOptions options;
  options.message_timeout = std::chrono::milliseconds(100);
  WsTestServer server(options);
  RawClient client(server.port());
  client.write(encode(text("first")) + encode(text("second")).substr(0, 3));
  EXPECT_EQ(client.read(), text("first"));
  EXPECT_EQ(code_of(client.read().value()), 1008);
  EXPECT_EQ(server.metrics().late_messages.value(), 1U);
}

TEST(WebSocketSlowPeer, EveryMessageOfAStreamHasATimeOfItsOwn) {
  WsOptions options;
  options.message_timeout = std::chrono::seconds(1);
  WsTestServer server(options);
  RawClient client(server.port());
  const auto message = encode(text("one of many"));
  const auto half = message.size() / 2;
  // Whenever the server has read everything it is in the middle of a message, for far longer than one may
  // take.
  const auto end = std::chrono::steady_clock::now() + 3 * options.message_timeout;
  client.write(message.substr(0, half));
  while (std::chrono::steady_clock::now() < end) {
    client.write(message.substr(half) + message.substr(0, half));
    ASSERT_EQ(client.read(), text("one of many"));
  }
  EXPECT_EQ(server.metrics().late_messages.value(), 0U);
}

TEST(WebSocketBackPressure, WhoDoesNotReadIsNotReadFrom) {
  WsOptions options;
  options.queue_bytes_max = 256 * 1024;
  WsTestServer server(options);
  RawClient client(server.port());
  // Far more than the buffers of both sockets and the queue take; without back-pressure the queue would
  // overflow.
  constexpr int kMessages = 1000;
  const std::string payload(32 * 1024, 'b');
  std::thread writer([&] {
    const std::string bytes = encode(text(payload));
    for (int i = 0; i < kMessages; ++i) client.write(bytes);
  });
  client.wait_readable();
  int echoed = 0;
  while (echoed < kMessages) {
    const auto frame = client.read();
    if (!frame || frame->opcode != kText || frame->payload != payload) break;
    ++echoed;
  }
  writer.join();
  EXPECT_EQ(echoed, kMessages);
  EXPECT_EQ(server.metrics().slow_closed.value(), 0U);
}

TEST(WebSocketBackPressure, NothingIsDeliveredWhilePaused) {
  Room room;
  WsTestServer server(WsOptions(), members_of(room));
  RawClient client(server.port());
  client.write(encode(text("1")) + encode(text("pause")) + encode(text("2")) + encode(text("3")));
  EXPECT_EQ(client.read(), text("got 1"));
  EXPECT_EQ(client.read(), text("got pause"));
  server.run([&] {
    EXPECT_EQ(room.received, (std::vector<std::string>{"1", "pause"}));
    room.open.at(0)->resume_reading();
  });
  EXPECT_EQ(client.read(), text("got 2"));
  EXPECT_EQ(client.read(), text("got 3"));
}

TEST(WebSocketSharing, AThousandSubscribersShareOneFrame) {
  Room room;
  WsTestServer server(WsOptions(), members_of(room));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port(), i % 2 == 0 ? "" : "permessage-deflate"));
  }
  wait_until([&] { return room.opened == 1000; });
  std::string payload;
  for (int i = 0; i < 100; ++i) payload += "[\"EVENT\",\"subscription\"],";
  FramePtr frame = make_frame(WsOpcode::text, payload);
  server.run([&] {
    for (const auto& connection : room.open) connection->send(frame);
    EXPECT_EQ(frame.use_count(), 1001);
  });
  const RawFrame plain = text(payload);
  const RawFrame compressed = clients[1]->read().value();
  EXPECT_EQ(compressed.rsv, 4);
  EXPECT_LT(compressed.payload.size(), payload.size() / 10);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (i == 1) continue;
    ASSERT_EQ(clients[i]->read(), i % 2 == 0 ? plain : compressed) << i;
  }
  wait_until([&] {
    long uses = 0;
    server.run([&] { uses = frame.use_count(); });
    return uses == 1;
  });
}

TEST(WebSocketShutdown, ClosesEverybodyWith1012) {
  Room room;
  WsTestServer server(WsOptions(), members_of(room));
  RawClient first(server.port());
  RawClient second(server.port());
  wait_until([&] { return room.opened == 2; });
  server.stop();
  for (RawClient* client : {&first, &second}) {
    EXPECT_EQ(client->read(), close_with(1012, "service restart"));
    client->send(close_with(1012));
    EXPECT_EQ(client->read(), std::nullopt);
  }
  EXPECT_EQ(await(room.first_end.get_future()), 1012);
}

TEST(WebSocketIdle, ASilentPeerIsPingedThenClosed) {
  Room room;
  WsOptions options;
  options.ping_interval = std::chrono::milliseconds(20);
  options.idle_timeout = std::chrono::milliseconds(1000);
  options.close_timeout = std::chrono::milliseconds(80);
  WsTestServer server(options, members_of(room));
  RawClient client(server.port());
  const auto frames = client.read_all();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], ping(""));
  EXPECT_EQ(code_of(frames[1]), 1001);
  EXPECT_EQ(await(room.first_end.get_future()), 1001);
}

TEST(WebSocketIdle, APeerThatAnswersPingsStays) {
  Room room;
  WsOptions options;
  options.ping_interval = std::chrono::milliseconds(10);
  options.idle_timeout = std::chrono::seconds(15);
  WsTestServer server(options, members_of(room));
  RawClient client(server.port());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(client.read(), ping(""));
    client.send(pong(""));
  }
  server.run([&] { EXPECT_EQ(room.open.size(), 1U); });
}

TEST(WebSocketMetrics, CountConnectionsMessagesAndCodes) {
  WsTestServer server;
  EXPECT_EQ(exchange(server.port(), {text("a"), text("b"), close_with(4000)}).size(), 3U);
  wait_until([&] { return server.metrics().connections.value() == 0; });
  EXPECT_EQ(server.metrics().messages_received.value(), 2U);
  EXPECT_EQ(server.metrics().messages_sent.value(), 2U);
  EXPECT_EQ(server.metrics().bytes_sent.value(), 3U + 3U + 4U);
  EXPECT_NE(server.registry().render().find("todoke_ws_closed_total{code=\"4xxx\"} 1"), std::string::npos);
}

}  // namespace
}  // namespace todoke::net
