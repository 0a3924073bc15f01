#include "orders/brokers/http/answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Order asked_order(TimeInForce time_in_force = TimeInForce::ioc) {
  Order order;
  order.idempotency_key = "key-00001";
  order.instrument = "BTC-USD";
  order.qty = Decimal(2);
  order.price = Decimal(100);
  order.time_in_force = time_in_force;
  return order;
}

SendOutcome sent(int status, const std::string& body = "", TimeInForce time_in_force = TimeInForce::ioc) {
  return read_send_answer(net::json_response(status, body), asked_order(time_in_force));
}

constexpr const char* kFilled =
    R"({"status":"ok","order_ref":"b-1","fills":[{"px":100.5,"qty":0.5,"ts":"2025-08-24T00:00:00Z"},)"
    R"({"px":101,"qty":1.5,"ts":"2025-08-24T00:00:01Z","venue":"x"}],"anything":{"else":[1]}})";

TEST(HttpAnswer, OkWithFillsIsAnExecution) {
  const auto outcome = sent(201, kFilled);
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_EQ(outcome.result.executed_qty, Decimal(2));
  EXPECT_EQ(outcome.result.cost.text(), "201.75");
  EXPECT_EQ(outcome.result.broker.order_ref, "b-1");
  EXPECT_THAT(outcome.result.warnings, IsEmpty());
  EXPECT_FALSE(outcome.in_doubt);
}

TEST(HttpAnswer, AReferenceThatIsTooLongIsCutBetweenCharacters) {
  std::string reference = "xx";
  for (int i = 0; i < 100; ++i) reference += "\u3042";
  const auto outcome = sent(200, R"({"status":"ok","order_ref":")" + reference + R"("})");
  // 84 characters of three bytes fit into 254.
  EXPECT_EQ(outcome.result.broker.order_ref, reference.substr(0, 2 + 84 * 3));
  const std::string fits(256, 'r');
  EXPECT_EQ(sent(200, R"({"status":"ok","order_ref":")" + fits + R"("})").result.broker.order_ref, fits);
}

TEST(HttpAnswer, OkWithoutAFillDependsOnHowLongTheOrderWaits) {
  EXPECT_THAT(sent(200, R"({"status":"ok"})").result.warnings, ElementsAre("UNFILLED"));
  EXPECT_THAT(sent(200, R"({"status":"ok"})", TimeInForce::gtc).result.warnings, Contains("WORKING"));
}

TEST(HttpAnswer, ErrorInTheBodyIsARejectionWhateverTheStatus) {
  const auto outcome = sent(200, R"({"status":"error","message":"no margin\n"})");
  EXPECT_EQ(outcome.result.reason_code, reason::kBrokerRejected);
  EXPECT_EQ(outcome.message, "the broker answered 200: no margin?");
  EXPECT_FALSE(outcome.duplicate);
}

TEST(HttpAnswer, AReferenceMayBeANumber) {
  EXPECT_EQ(sent(200, R"({"status":"ok","order_ref":12345})").result.broker.order_ref, "12345");
}

TEST(HttpAnswer, ARefusalWithFillsCantBeRead) {
  const auto outcome =
      sent(200, R"({"status":"error","fills":[{"px":1,"qty":1,"ts":"2025-08-24T00:00:00Z"}]})");
  EXPECT_EQ(outcome.result.reason_code, reason::kInternalError);
  EXPECT_TRUE(outcome.in_doubt);
}

TEST(HttpAnswer, ALookupThatSaysDuplicateSaysNothing) {
  const auto response = net::json_response(200, R"({"status":"error","reason_code":"DUPLICATE_ORDER"})");
  EXPECT_EQ(read_find_answer(response, asked_order()).answer, FindAnswer::unknown);
}

TEST(HttpAnswer, AMessageKeepsItsLanguageButNoControlCharacters) {
  const auto outcome =
      sent(200, R"({"status":"error","message":"証拠金不足\u001b[2J\u0085\u202e\u007fend"})");
  EXPECT_EQ(outcome.message, "the broker answered 200: 証拠金不足?[2J???end");
}

TEST(HttpAnswer, AnAnswerWithoutAReadableStatusIsInDoubt) {
  for (const auto* body :
       {"", "OK", "[]", R"({"status":"done"})", R"({"status":"error","fills":{}})", R"(["status","ok"])",
        R"({"inner":{"status":"ok"},"message":"\xff"})", R"({"status":"ok","status":"error"})",
        R"({"message":"status\":\"ok)", R"({"status":"o)"}) {
    const auto outcome = sent(200, body);
    EXPECT_EQ(outcome.result.status, ExecStatus::error) << body;
    EXPECT_EQ(outcome.result.reason_code, reason::kInternalError) << body;
    EXPECT_TRUE(outcome.in_doubt) << body;
  }
}

TEST(HttpAnswer, AReadableOkIsAnAcknowledgementWhateverElseCantBeRead) {
  struct Case {
    std::string body;
    std::string unread;
  };
  const Case cases[] = {
      {R"({"status":"ok","fills":{}})", "fills"},
      {R"({"status":"ok","fills":[{"px":"100","qty":1,"ts":"2025-08-24T00:00:00Z"}]})", "fills[0]"},
      {R"({"status":"ok","fills":[{"px":1,"qty":-1,"ts":"2025-08-24T00:00:00Z"}]})", "fills[0]"},
      {R"({"status":"ok","fills":[{"px":1,"qty":1}]})", "fills[0]"},
      {R"({"status":"ok","fills":[{"px":1,"qty":3,"ts":"2025-08-24T00:00:00Z"}]})",
       "fills: more than the order's qty"},
      {"{\"status\":\"ok\",\"message\":\"Ausf\xFChrung\"}", "body: is no valid UTF-8"},
      {R"({"message":"\ud800","status":"ok"})", "body: holds half of a surrogate pair"},
      {R"({"status" : "ok", "status": "ok"})", "body: is there twice"},
      {R"({"status":"ok","fills":[{"px":1,)", "body: is no valid JSON"},
  };
  for (const auto& [body, unread] : cases) {
    const auto outcome = sent(200, body);
    EXPECT_EQ(outcome.result.status, ExecStatus::ok) << body;
    EXPECT_FALSE(outcome.in_doubt) << body;
    EXPECT_EQ(outcome.unread, unread) << body;
    EXPECT_THAT(outcome.result.warnings, ElementsAre("UNREADABLE")) << body;
    EXPECT_EQ(outcome.result.executed_qty, Decimal(0)) << body;
    EXPECT_THAT(sent(200, body, TimeInForce::gtc).result.warnings, ElementsAre("UNREADABLE", "WORKING"))
        << body;
    const auto found = read_find_answer(net::json_response(200, body), asked_order());
    EXPECT_EQ(found.answer, FindAnswer::found) << body;
    EXPECT_EQ(found.unread, unread) << body;
  }
}

TEST(HttpAnswer, FillsThatCanBeReadAreKeptBesideOneThatCant) {
  const auto outcome =
      sent(200, R"({"status":"ok","order_ref":"b-2","fills":[)"
                R"({"px":10,"qty":0.5,"ts":"2025-08-24T00:00:00Z"},{"px":10,"qty":"1.5"}]})");
  EXPECT_EQ(outcome.result.executed_qty.text(), "0.5");
  EXPECT_EQ(outcome.result.broker.order_ref, "b-2");
  EXPECT_THAT(outcome.result.warnings, ElementsAre("UNREADABLE"));
  EXPECT_EQ(outcome.unread, "fills[1]");
}

TEST(HttpAnswer, StatusesAreSortedByWhatHelps) {
  struct Case {
    int status;
    std::string_view code;
    bool in_doubt;
  };
  constexpr Case kCases[] = {
      {301, reason::kBrokerDown, false},     {400, reason::kBrokerRejected, false},
      {401, reason::kBrokerDown, false},     {403, reason::kBrokerDown, false},
      {404, reason::kBrokerDown, false},     {408, reason::kBrokerTimeout, true},
      {409, reason::kBrokerRejected, false}, {422, reason::kBrokerRejected, false},
      {425, reason::kBrokerDown, false},     {429, reason::kBrokerDown, false},
      {500, reason::kBrokerDown, true},      {502, reason::kBrokerDown, true},
      {503, reason::kBrokerDown, true},      {504, reason::kBrokerDown, true},
  };
  for (const auto& [status, code, in_doubt] : kCases) {
    const auto outcome = sent(status);
    EXPECT_EQ(outcome.result.reason_code, code) << status;
    EXPECT_EQ(outcome.in_doubt, in_doubt) << status;
  }
}

TEST(HttpAnswer, RetryAfterIsKeptWithinReason) {
  const auto pause = [](const char* text) {
    auto response = net::text_response(429, "");
    response.headers.set("Retry-After", text);
    return read_send_answer(response, asked_order()).retry_after;
  };
  EXPECT_EQ(pause("7"), std::chrono::seconds(7));
  auto unavailable = net::text_response(503, "");
  unavailable.headers.set("Retry-After", "7");
  EXPECT_EQ(read_send_answer(unavailable, asked_order()).retry_after, std::chrono::seconds(7));
  EXPECT_EQ(pause("999999"), std::chrono::hours(1));
  EXPECT_EQ(pause("99999999999999999999"), std::chrono::hours(1));
  EXPECT_EQ(pause("-1"), std::nullopt);
  EXPECT_EQ(pause("soon"), std::nullopt);
  EXPECT_EQ(pause("Fri, 31 Dec 2199 23:59:59 GMT"), std::chrono::hours(1));
  EXPECT_EQ(pause("Sun, 06 Nov 1994 08:49:37 GMT"), std::nullopt);
  EXPECT_EQ(pause("Fri, 31 Dec 2199 23:59:59 GMT or so"), std::nullopt);
}

TEST(HttpAnswer, ADuplicateIsToldFromOtherRejections) {
  EXPECT_TRUE(sent(409, R"({"code":"DUPLICATE_ORDER"})").duplicate);
  EXPECT_TRUE(sent(200, R"({"status":"error","reason_code":"DUPLICATE_ORDER"})").duplicate);
  EXPECT_FALSE(sent(409, R"({"code":"NO_MARGIN"})").duplicate);
}

TEST(HttpAnswer, ALookUpFindsMissesOrDoesNotKnow) {
  const auto found = [](int status, const std::string& body) {
    return read_find_answer(net::json_response(status, body), asked_order());
  };
  EXPECT_EQ(found(200, kFilled).answer, FindAnswer::found);
  EXPECT_EQ(found(200, kFilled).result.executed_qty, Decimal(2));
  EXPECT_EQ(found(200, R"({"status":"error"})").result.reason_code, reason::kBrokerRejected);
  EXPECT_EQ(found(404, "").answer, FindAnswer::not_found);
  for (const int status : {401, 429, 500}) EXPECT_EQ(found(status, kFilled).answer, FindAnswer::unknown);
  EXPECT_EQ(found(200, "?").answer, FindAnswer::unknown);
  EXPECT_EQ(found(503, R"({"message":"no margin for 5 BTC"})").message, "the broker answered 503");
}

TEST(HttpAnswer, AnExchangeWithoutAnAnswerIsInDoubtOnceSomethingWasSent) {
  using Kind = net::ClientError::Kind;
  const auto failed = [](Kind kind, bool was_sent) {
    return read_send_failure(net::ClientError(kind, was_sent, "why"));
  };
  EXPECT_EQ(failed(Kind::timeout, true).result.reason_code, reason::kBrokerTimeout);
  EXPECT_TRUE(failed(Kind::timeout, true).in_doubt);
  EXPECT_FALSE(failed(Kind::timeout, false).in_doubt);
  EXPECT_EQ(failed(Kind::connect, false).result.reason_code, reason::kBrokerDown);
  EXPECT_FALSE(failed(Kind::connect, false).in_doubt);
  EXPECT_FALSE(failed(Kind::lost_unsent, false).in_doubt);
  EXPECT_TRUE(failed(Kind::lost_sent, true).in_doubt);
  EXPECT_TRUE(failed(Kind::bad_response, true).in_doubt);
  EXPECT_THAT(failed(Kind::connect, false).message, HasSubstr("why"));
}

}  // namespace
}  // namespace todoke::orders
