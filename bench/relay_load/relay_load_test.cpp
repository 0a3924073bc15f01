// What the figures of the load generator rest on: that no reply is misread and no refusal is lost.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "relay_load/options.hpp"
#include "relay_load/publisher.hpp"
#include "relay_load/wire.hpp"

namespace todoke::bench {
namespace {

const std::string kId(64, 'a');

TEST(ReplyTest, OkIsReadWithItsIdVerdictAndReason) {
  const auto message = R"(["OK",")" + kId + R"(",false,"blocked: no \"x\""])";
  const auto reply = read_reply(message);
  EXPECT_EQ(reply.type, ReplyType::ok);
  EXPECT_EQ(reply.name, kId);
  EXPECT_FALSE(reply.accepted);
  EXPECT_EQ(reply.text, R"(blocked: no \"x\")");
}

TEST(ReplyTest, SpacesBetweenTheElementsAreAllowed) {
  const auto message = R"( [ "OK" , ")" + kId + R"(" , true , "" ] )";
  const auto reply = read_reply(message);
  EXPECT_EQ(reply.type, ReplyType::ok);
  EXPECT_TRUE(reply.accepted);
  EXPECT_EQ(read_reply(R"(["EOSE", "live"])").type, ReplyType::eose);
}

TEST(ReplyTest, MessagesThatEndTooEarlyAreNotTakenForReplies) {
  for (const auto* message : {"", "[", R"(["OK")", R"(["OK","a")", R"(["OK","a",maybe])", R"(["EVENT","s")",
                              R"(["OK","a\)", R"({"OK":1})", R"(["HELLO","x"])"}) {
    EXPECT_EQ(read_reply(message).type, ReplyType::other) << message;
  }
}

TEST(ReplyTest, IdIsFoundWhereverItStandsAndNotInsideTheContent) {
  EXPECT_EQ(id_in(R"({"id":")" + kId + R"(","kind":1}])"), kId);
  EXPECT_EQ(id_in(R"({"content":"\"id\":\")" + std::string(64, 'b') + R"(\"","id" : ")" + kId + R"("}])"),
            kId);
  EXPECT_EQ(id_in(R"({"tags":[["id","x"]],"content":""}])"), "");
}

TEST(FrameTest, FramesOfEverySizeCarryTheirPayloadUnderAZeroMask) {
  for (const std::size_t size : {0U, 125U, 126U, 65'535U, 65'536U}) {
    const std::string payload(size, 'x');
    const auto bytes = text_frame(payload);
    const std::size_t header = bytes.size() - size;
    EXPECT_EQ(header, size < 126 ? 6U : size <= 65'535 ? 8U : 14U);
    EXPECT_EQ(bytes.substr(header - 4, 4), std::string(4, '\0'));
    EXPECT_EQ(bytes.substr(header), payload);
  }
}

TEST(FrameTest, FrameIsGivenOnceItIsComplete) {
  const std::string bytes = std::string("\x81\x7e\x00\x80", 4) + std::string(128, 'x');
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(first_frame(std::string_view(bytes).substr(0, size)));
  const auto frame = first_frame(bytes + "rest");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->size, bytes.size());
  EXPECT_EQ(frame->payload.size(), 128U);
  EXPECT_TRUE(frame->final);
}

TEST(FrameTest, EndlessAndMaskedFramesAreRefused) {
  EXPECT_THROW(first_frame(std::string("\x81\x7f\x7f\0\0\0\0\0\0\0", 10)), std::runtime_error);
  EXPECT_THROW(first_frame("\x81\x81"), std::runtime_error);
}

class LedgerTest : public testing::Test {
 protected:
  std::optional<std::size_t> settle(std::size_t event, bool accepted, std::string_view text = "") {
    const auto frame = events.frame(event);
    const auto id = id_in(frame);
    return ledger.settle({ReplyType::ok, id, accepted, text});
  }
  EventMaker maker{"kukuri:global", 450};
  EventSet events{maker.make(3)};
  CaseResult result;
  Ledger ledger{events, result};
};

TEST_F(LedgerTest, OnlyNewlyAcceptedEventsCount) {
  EXPECT_EQ(settle(0, true), 0U);
  EXPECT_EQ(settle(1, true, "duplicate: have it"), 1U);
  EXPECT_EQ(settle(2, false, "rate-limited: slow down"), 2U);
  EXPECT_EQ(ledger.accepted(), 1U);
  EXPECT_EQ(ledger.settled(), 3U);
  EXPECT_EQ(result.problems.at("OK true: duplicate: have it"), 1U);
  EXPECT_EQ(result.problems.at("OK false: rate-limited: slow down"), 1U);
}

TEST_F(LedgerTest, SecondAndForeignOksAreProblemsAndCountNothing) {
  settle(0, true);
  EXPECT_FALSE(settle(0, true));
  EXPECT_FALSE(ledger.settle({ReplyType::ok, kId, true, ""}));
  EXPECT_EQ(ledger.settled(), 1U);
  EXPECT_EQ(result.problems.size(), 2U);
}

TEST_F(LedgerTest, RelayThatAcceptsNothingCannotBeMeasured) {
  settle(0, false, "blocked: no");
  EXPECT_THROW(ledger.require_some(), CaseFailed);
  settle(1, true);
  EXPECT_NO_THROW(ledger.require_some());
}

TEST(EventMakerTest, EventsHaveTheSizeThatWasAskedFor) {
  EventMaker maker("kukuri:global", 700);
  const auto events = maker.make(2);
  constexpr std::size_t kAround = 8 + 10;  // the frame's header and ["EVENT",…]
  EXPECT_EQ(events.frame(0).size(), 700 + kAround);
  EXPECT_NE(events.frame(0), events.frame(1));
}

TEST(OptionsTest, GroupOfCasesCanBeAskedForByItsName) {
  const std::vector<std::string> cases{"ok-idle", "ok-load", "req"};
  const auto options = parse_options({"ws://a/", "--only", "ok", "--rate=7"}, cases);
  EXPECT_TRUE(options.wants("ok-idle"));
  EXPECT_TRUE(options.wants("ok-load"));
  EXPECT_FALSE(options.wants("req"));
  EXPECT_EQ(options.rate, 7U);
  EXPECT_EQ(options.urls, std::vector<std::string>{"ws://a/"});
}

TEST(OptionsTest, WrongCallsAreRefused) {
  const std::vector<std::string> cases{"req"};
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"--only", "re"}, {"--events", "many"}, {"--events", "0"}, {"--nothing", "1"}, {"--rate"}}) {
    EXPECT_THROW(parse_options(call, cases), UserError) << call.front();
  }
}

}  // namespace
}  // namespace todoke::bench
