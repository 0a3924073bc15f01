// Bodies that come piece by piece.
#include <deque>

#include <gtest/gtest.h>

#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

// Gives its pieces, then what `end` says.
class Pieces final : public BodyStream {
 public:
  enum class End { all, broken, never };
  Pieces(Executor executor, std::deque<std::string> pieces, End end)
      : pieces_(std::move(pieces)), end_(end), stopped_(std::move(executor)) {}

  Task<std::optional<std::string>> next() override {
    if (!pieces_.empty()) {
      auto piece = std::move(pieces_.front());
      pieces_.pop_front();
      co_return piece;
    }
    if (end_ == End::broken) throw std::runtime_error("the source is gone");
    if (end_ == End::never) co_await stopped_.wait();
    co_return std::nullopt;
  }
  void stop() override { stopped_.set(); }

 private:
  std::deque<std::string> pieces_;
  End end_;
  Signal stopped_;
};

struct HttpStreams : testing::Test {
  Rig rig;

  void serve(std::deque<std::string> pieces, Pieces::End end) {
    rig.router->add("GET", "/stream", [=, this](Request&) -> Task<Response> {
      auto response = text_response(200, "");
      response.stream = std::make_shared<Pieces>(rig.worker(), pieces, end);
      co_return response;
    });
    rig.router->add("GET", "/plain", [](Request&) -> Task<Response> { co_return text_response(200, "ok"); });
    rig.start();
  }
};

TEST_F(HttpStreams, PiecesComeAsChunksAndTheConnectionGoesOn) {
  serve({"one", "", std::string(20, 'x')}, Pieces::End::all);
  RawClient client(rig.port());
  client.send(get("/stream"));
  const auto head = client.read_response(true);
  EXPECT_EQ(head.header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(head.header("Content-Length"), "");
  const std::string wanted = "3\r\none\r\n14\r\n" + std::string(20, 'x') + "\r\n0\r\n\r\n";
  EXPECT_EQ(client.read_exactly(wanted.size()), wanted);
  EXPECT_EQ(client.ask(get("/plain")).body, "ok");
}

TEST_F(HttpStreams, Http10ReadsToTheEndOfTheConnection) {
  serve({"one", "two"}, Pieces::End::all);
  RawClient client(rig.port());
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.read_response(true).header("Transfer-Encoding"), "");
  EXPECT_EQ(client.read_exactly(6), "onetwo");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpStreams, HeadGetsNoPiece) {
  serve({"one"}, Pieces::End::all);
  RawClient client(rig.port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.ask(get("/plain")).body, "ok");
}

TEST_F(HttpStreams, ABodyThatBreaksOffHasNoEnd) {
  serve({"one"}, Pieces::End::broken);
  RawClient client(rig.port());
  client.send(get("/stream"));
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.read_exactly(8), "3\r\none\r\n");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpStreams, AStopEndsABodyThatWaits) {
  serve({"one"}, Pieces::End::never);
  RawClient client(rig.port());
  client.send(get("/stream"));
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.read_exactly(8), "3\r\none\r\n");
  rig.ask_to_stop();
  EXPECT_EQ(client.read_exactly(5), "0\r\n\r\n");
  rig.await_stopped();
}

}  // namespace
}  // namespace todoke::net::test
