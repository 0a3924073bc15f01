// The client of src/net/ws_client.hpp against the server.
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "net/ws_client.hpp"

namespace todoke::net {
namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

// Runs a coroutine to its end on an event loop of its own.
void run(Task<void> work) {
  asio::io_context context(1);
  std::exception_ptr failure;
  bool ended = false;
  spawn(context.get_executor(), std::move(work), [&](const std::exception_ptr& error) {
    failure = error;
    ended = true;
  });
  context.run();
  if (failure) std::rethrow_exception(failure);
  ASSERT_TRUE(ended);
}

std::string sample(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "sample " + std::to_string(text.size()) + ", ";
  text.resize(size);
  return text;
}

Task<void> echo_sizes(std::string url, bool compression) {
  WsClientOptions options;
  options.ws.compression = compression;
  const auto client = co_await WsClient::connect(url, options, soon());
  EXPECT_EQ(client->compressed(), compression);
  for (const std::size_t size : {0UL, 1UL, 125UL, 126UL, 5000UL, 65535UL, 65536UL, 131072UL}) {
    co_await client->send_text(sample(size), soon());
    const auto answer = co_await client->receive(soon());
    EXPECT_TRUE(answer && answer->opcode == WsOpcode::text && answer->payload == sample(size)) << size;
  }
  co_await client->ping(soon());
  co_await client->close(4000, "done", soon());
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(client->close_code(), 4000);
  const auto nothing = co_await client->receive(soon());
  EXPECT_FALSE(nothing);
}

TEST(WebSocketClient, EchoesPingsAndCloses) {
  WsTestServer server;
  run(echo_sizes(server.url(), false));
  run(echo_sizes(server.url(), true));
}

// Counts what it was sent, and closes when it is told to.
class Closer : public EchoHandler {
 public:
  void on_message(WsOpcode, std::string_view payload) override {
    connection_->send_text(payload);
    if (payload == "bye") connection_->close(4005, "because");
  }
};

Task<void> server_closes(std::string url) {
  const WsClientOptions options;
  const auto client = co_await WsClient::connect(url, options, soon());
  co_await client->send_text("bye", soon());
  const auto answer = co_await client->receive(soon());
  EXPECT_TRUE(answer && answer->payload == "bye");
  const auto nothing = co_await client->receive(soon());
  EXPECT_FALSE(nothing);
  EXPECT_EQ(client->close_code(), 4005);
  EXPECT_EQ(client->close_reason(), "because");
  bool refused = false;
  try {
    co_await client->send_text("too late", soon());
  } catch (const NetError&) {
    refused = true;
  }
  EXPECT_TRUE(refused);
}

TEST(WebSocketClient, LearnsWhyTheServerClosed) {
  WsTestServer server(WsOptions(), [] { return std::make_shared<Closer>(); });
  run(server_closes(server.url()));
}

// Sends many messages as soon as the connection is open, page by page.
class Pages : public EchoHandler {
 public:
  static constexpr int kMessages = 5000;
  void on_open(const std::shared_ptr<WsConnection>& connection) override {
    EchoHandler::on_open(connection);
    send_page();
  }
  void on_written(std::size_t) override {
    if (connection_->queued_bytes() == 0) send_page();
  }

 private:
  void send_page() {
    for (int i = 0; i < 100 && next_ < kMessages; ++i)
      connection_->send_text(std::to_string(next_++) + std::string(2000, '.'));
    if (next_ == kMessages) connection_->close(1000, "");
  }

  int next_ = 0;
};

Task<void> read_slowly(std::string url) {
  WsClientOptions options;
  options.inbox_messages_max = 4;
  const auto client = co_await WsClient::connect(url, options, soon());
  for (int i = 0; i < Pages::kMessages; ++i) {
    const auto message = co_await client->receive(soon());
    if (!message || !message->payload.starts_with(std::to_string(i) + ".")) {
      ADD_FAILURE() << "message " << i << " is missing";
      co_return;
    }
  }
  const auto nothing = co_await client->receive(soon());
  EXPECT_FALSE(nothing);
  EXPECT_EQ(client->close_code(), 1000);
}

TEST(WebSocketClient, ASmallInboxLosesNothing) {
  WsTestServer server(WsOptions(), [] { return std::make_shared<Pages>(); });
  run(read_slowly(server.url()));
}

Task<void> send_much(std::string url) {
  WsClientOptions options;
  options.ws.queue_bytes_max = 256 * 1024;
  const auto client = co_await WsClient::connect(url, options, soon());
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) co_await client->send_text(std::string(50'000, 'm'), soon());
    for (int i = 0; i < 20; ++i) {
      const auto message = co_await client->receive(soon());
      EXPECT_TRUE(message && message->payload.size() == 50'000);
    }
  }
  EXPECT_FALSE(client->ended());
}

TEST(WebSocketClient, SendingWaitsForRoomInTheQueue) {
  WsTestServer server;
  run(send_much(server.url()));
}

Task<void> refused_by_server(std::string url) {
  WsClientOptions options;
  options.headers.add("Sec-WebSocket-Version", "12");
  options.headers.add("Sec-WebSocket-Key", "again");
  int status = 0;
  try {
    co_await WsClient::connect(url, options, soon());
  } catch (const WsRefused& refused) {
    status = refused.status();
  }
  EXPECT_EQ(status, 400);
  const std::string no_websocket = "http://127.0.0.1/";
  bool no_url = false;
  try {
    co_await WsClient::connect(no_websocket, options, soon());
  } catch (const UserError&) {
    no_url = true;
  }
  EXPECT_TRUE(no_url);
}

TEST(WebSocketClient, ThrowsWhenTheServerRefuses) {
  WsTestServer server;
  run(refused_by_server(server.url()));
}

Task<void> times_out(std::string url) {
  const WsClientOptions options;
  const auto client = co_await WsClient::connect(url, options, soon());
  bool late = false;
  try {
    co_await client->receive(Deadline::after(std::chrono::milliseconds(10)));
  } catch (const NetError&) {
    late = true;
  }
  EXPECT_TRUE(late);
  co_await client->send_text("still usable", soon());
  const auto answer = co_await client->receive(soon());
  EXPECT_TRUE(answer && answer->payload == "still usable");
}

TEST(WebSocketClient, StaysUsableAfterADeadlineAndMayBeDropped) {
  WsTestServer server;
  run(times_out(server.url()));
}

}  // namespace
}  // namespace todoke::net
