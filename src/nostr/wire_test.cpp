#include "nostr/wire.hpp"

#include <fmt/format.h>

#include "nostr/event_id.hpp"
#include "nostr/replies.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using namespace std::string_literals;

const Event& sent_event() {
  static const auto event = test::event_with(1, {{"t", test::kTopic}}, "hi");
  return event;
}

template <class Message>
Message parsed(std::string_view text) {
  auto message = parse_client_message(text, {});
  if (!message) throw std::runtime_error(fmt::format("{}: {}", text, message.error().reply()));
  return std::get<Message>(std::move(*message));
}

std::string reply(std::string_view text, const MessageLimits& limits = {}) {
  const auto message = parse_client_message(text, limits);
  return message ? "" : message.error().reply();
}

TEST(ClientMessages, EventAndAuthCarryTheEvent) {
  const auto json = std::string(sent_event().json());
  EXPECT_EQ(parsed<EventMessage>(R"(["EVENT",)" + json + "]").event.json(), json);
  EXPECT_EQ(parsed<AuthMessage>(R"(["AUTH",)" + json + "]").event.id(), sent_event().id());
  const auto spaced = parsed<EventMessage>(" [ \"EVENT\" , " + json + " ] \n").event;
  EXPECT_EQ(spaced.json(), json);
  EXPECT_TRUE(has_right_id(spaced));
  EXPECT_EQ(parsed<EventMessage>(R"(["\u0045VENT",)" + json + "]").event.json(), json);
}

TEST(ClientMessages, ReqAndCountCarryFilters) {
  const auto req = parsed<ReqMessage>(R"(["REQ","s",{"kinds":[1]},{"limit":5,"#t":["x"]}])");
  EXPECT_EQ(req.sub.text(), "s");
  ASSERT_EQ(req.filters.size(), 2U);
  EXPECT_EQ(req.filters[1].limit, 5U);
  EXPECT_EQ(parsed<CountMessage>(R"(["COUNT","c",{}])").filters.size(), 1U);
  EXPECT_EQ(parsed<CloseMessage>(R"(["CLOSE","c"])").sub.text(), "c");
}

TEST(ClientMessages, EqualFiltersAreOne) {
  const auto req = parsed<ReqMessage>(
      R"(["REQ","s",{"kinds":[1,2],"#a":["x"],"#b":["y"]},{"kinds":[1]},{"#b":["y"],"#a":["x"],"kinds":[2,1,1]}])");
  ASSERT_EQ(req.filters.size(), 2U);
  EXPECT_EQ(req.filters[0].kinds->values().size(), 2U);
  EXPECT_EQ(req.filters[1].kinds->values().size(), 1U);
  EXPECT_EQ(parsed<CountMessage>(R"(["COUNT","c",{"limit":1},{"limit":2},{"limit":1}])").filters.size(), 2U);
  EXPECT_EQ(parsed<ReqMessage>(R"(["REQ","s",{"seq_after":1},{"seq_after":1}])").filters.size(), 1U);
}

TEST(ClientMessages, SubscriptionIdsAreOneToSixtyFourCharactersOfAnyKind) {
  const auto many = [](std::string_view character, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += character;
    return out;
  };
  for (const auto& id : {"a"s, many("a", 64), many("😀", 64), R"("quoted\")"s, " "s, "\n"s, "\0"s, "届け"s}) {
    const auto sub = SubId::from(id);
    ASSERT_TRUE(sub) << id;
    const auto req = parsed<ReqMessage>(fmt::format(R"(["REQ",{},{{}}])", sub->json()));
    EXPECT_EQ(req.sub.text(), id);
    EXPECT_EQ(req.sub.json(), sub->json());
  }
  for (const auto& id : {""s, many("a", 65), many("😀", 65)}) EXPECT_FALSE(SubId::from(id)) << id;
}

TEST(ClientMessages, WhatIsNoMessageGetsANotice) {
  const auto notice = [](std::string_view text) { return fmt::format(R"(["NOTICE","{}"])", text); };
  const auto not_json = notice("invalid: message is not JSON");
  const auto not_array = notice("invalid: message must be an array");
  const auto unknown = notice("invalid: unknown message type");
  const auto json = std::string(sent_event().json());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", not_json},
      {"hello", not_json},
      {"[", not_json},
      {"[]]", not_json},
      {"[\"EVENT\"", not_json},
      {R"(["REQ","s",{"kinds":[1]})", not_json},
      {R"(["REQ","s",{"kinds":[1]}]])", not_json},
      {R"(["REQ","s",{"kinds":[1]}] x)", not_json},
      {R"(["REQ","s",{"kinds":[1]},])", not_json},
      {R"(["REQ" "s",{"kinds":[1]}])", not_json},
      {R"(["REQ","s",{"kinds":[01]}])", not_json},
      {R"(["NEW","\x"])", not_json},
      {R"(["NEW",nul])", not_json},
      {R"(["NEW":1])", not_json},
      {R"(["REQ":"s",{}])", not_json},
      {"[\"REQ\",\"\xff\",{}]", not_json},
      {R"(["EVENT",)" + json + "]]", not_json},
      {R"(["EVENT",)" + json + ",]", not_json},
      {R"(["EVENT",)" + json, not_json},
      {R"(["EVENT",)" + json + "x]", not_json},
      {R"(["EVENT",)" + test::replaced(json, "{", "{\"x\":[1 2],") + "]", not_json},
      {R"(["CLOSE","s"] ["CLOSE","s"])", not_json},
      {"{}", not_array},
      {"17", not_array},
      {"\"EVENT\"", not_array},
      {"null", not_array},
      {"[]", notice("invalid: missing message element")},
      {"[1]", unknown},
      {"[null]", unknown},
      {"[[\"EVENT\"]]", unknown},
      {R"(["event",{}])", unknown},
      {R"(["NEG-WHAT","x"])", unknown},
      {R"(["EVENT\u0000",{}])", unknown},
      {std::string(200, '[') + std::string(200, ']'), notice("invalid: message too deep")},
      {R"(["NEW",)" + std::string(100'000 / 2, '[') + std::string(100'000 / 2, ']') + "]",
       notice("invalid: message too deep")},
      {R"(["EVENT",)" +
           test::replaced(json, "{", "{\"x\":" + std::string(99, '[') + std::string(99, ']') + ",") + "]",
       notice("invalid: message too deep")},
      {R"(["REQ"])", notice("invalid: missing message element")},
      {R"(["REQ",5,{}])", notice("invalid: subscription id must be 1 to 64 characters")},
      {R"(["REQ",null,{}])", notice("invalid: subscription id must be 1 to 64 characters")},
      {R"(["REQ","\ud800",{}])", notice("invalid: subscription id must be 1 to 64 characters")},
      {R"(["REQ",")" + std::string(600, 'x') + R"(",{}])",
       notice("invalid: subscription id must be 1 to 64 characters")},
      {R"(["CLOSE"])", notice("invalid: missing message element")},
      {R"(["CLOSE",""])", notice("invalid: subscription id must be 1 to 64 characters")},
      {R"(["CLOSE","a","b"])", notice("invalid: too many message elements")},
      {std::string(128 * 1024 + 1, ' '), notice("invalid: message too long")},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(reply(text), expected) << text.substr(0, 200);
}

TEST(ClientMessages, ReconciliationsCarryTheirMessageAsBytes) {
  const auto open = parsed<NegOpenMessage>(R"(["NEG-OPEN","n",{"kinds":[1]},"61aB00"])");
  EXPECT_EQ(open.sub.text(), "n");
  EXPECT_TRUE(open.filter.kinds->contains(Kind{1}));
  EXPECT_EQ(open.message, "\x61\xab\0"s);
  EXPECT_EQ(parsed<NegMsgMessage>(R"(["NEG-MSG","n",""])").message, "");
  EXPECT_EQ(parsed<NegCloseMessage>(R"(["NEG-CLOSE","n"])").sub.text(), "n");
  EXPECT_EQ(neg_msg_message(*SubId::from("a\"b"), "\x61\xff"), R"(["NEG-MSG","a\"b","61ff"])");
}

TEST(ClientMessages, EveryRefusedReconciliationGetsANegErrThatNamesIt) {
  const auto neg_err = [](std::string_view text) { return neg_err_message("n", text); };
  EXPECT_EQ(reply(R"(["NEG-OPEN","n"])"), neg_err("invalid: missing message element"));
  EXPECT_EQ(reply(R"(["NEG-OPEN","n",[],"61"])"), neg_err("invalid: filter must be an object"));
  EXPECT_EQ(reply(R"(["NEG-OPEN","n",{"x":1},"61"])"), neg_err("unsupported: unknown filter key"));
  EXPECT_EQ(reply(R"(["NEG-OPEN","n",{}])"), neg_err("invalid: missing message element"));
  EXPECT_EQ(reply(R"(["NEG-OPEN","n",{},"61",1])"), neg_err("invalid: too many message elements"));
  for (const auto* hex : {"6", "6g", "é"}) {
    EXPECT_EQ(reply(fmt::format(R"(["NEG-MSG","n","{}"])", hex)),
              neg_err("invalid: not a message of negentropy"));
  }
  EXPECT_EQ(reply(R"(["NEG-MSG","n",61])"), neg_err("invalid: not a message of negentropy"));
  EXPECT_EQ(reply(R"(["NEG-MSG","","61"])"),
            neg_err_message("", "invalid: subscription id must be 1 to 64 characters"));
  EXPECT_EQ(reply(R"(["NEG-MSG"])"), notice_message("invalid: missing message element"));
}

TEST(ClientMessages, EveryRefusedEventGetsAnOkThatNamesIt) {
  const auto json = std::string(sent_event().json());
  const auto id = sent_event().id().hex();
  const auto ok = [](std::string_view named, std::string_view text) {
    return fmt::format(R"(["OK","{}",false,"{}"])", named, text);
  };
  EXPECT_EQ(reply(R"(["EVENT",)" + test::replaced(json, "\"kind\":1", "\"kind\":70000") + "]"),
            ok(id, "invalid: kind must be an integer from 0 to 65535"));
  EXPECT_EQ(reply(R"(["AUTH",)" + test::replaced(json, "\"hi\"", "7") + "]"),
            ok(id, "invalid: content must be a string"));
  EXPECT_EQ(reply(R"(["EVENT",)" + json + ",{}]"), ok(id, "invalid: too many message elements"));
  EXPECT_EQ(reply(R"(["EVENT"])"), ok("", "invalid: missing message element"));
  EXPECT_EQ(reply(R"(["EVENT",[]])"), ok("", "invalid: event must be an object"));
  EXPECT_EQ(reply(R"(["EVENT",{}])"), ok("", "invalid: missing event member"));
  EXPECT_EQ(reply(R"(["EVENT",{"id":"a\"b"}])"),
            ok("a\\\"b", "invalid: id must be 64 lower-case hex digits"));
  MessageLimits limits;
  limits.event.event_bytes_max = json.size() - 1;
  EXPECT_EQ(reply(R"(["EVENT",)" + json + "]", limits), ok(id, "invalid: event too large"));
  limits.event = {};
  limits.event.tags_max = 0;
  EXPECT_EQ(reply(R"(["EVENT",)" + json + "]", limits), ok(id, "invalid: too many tags"));
}

TEST(ClientMessages, EveryRefusedQueryIsClosed) {
  for (const std::string verb : {"REQ", "COUNT"}) {
    const auto refused = [&](std::string_view rest) {
      return reply(fmt::format(R"(["{}",{}])", verb, rest));
    };
    EXPECT_EQ(refused(R"("s")"), R"(["CLOSED","s","invalid: no filters"])");
    EXPECT_EQ(refused(R"("s",[])"), R"(["CLOSED","s","invalid: filter must be an object"])");
    EXPECT_EQ(refused(R"("s","x")"), R"(["CLOSED","s","invalid: filter must be an object"])");
    EXPECT_EQ(refused(R"("s",{},{"foo":[[]]})"), R"(["CLOSED","s","unsupported: unknown filter key"])");
    EXPECT_EQ(refused(R"("a\"\n",{"kinds":1})"),
              R"(["CLOSED","a\"\n","invalid: kinds must be integers from 0 to 65535"])");
    EXPECT_EQ(refused(R"("",{})"), R"(["CLOSED","","invalid: subscription id must be 1 to 64 characters"])");
    EXPECT_EQ(refused("\"" + std::string(65, 'x') + "\",{}"),
              R"(["CLOSED",")" + std::string(65, 'x') +
                  R"(","invalid: subscription id must be 1 to 64 characters"])");
    EXPECT_EQ(refused(R"("s",{"seq_after":1},{"seq_after":2})"),
              R"(["CLOSED","s","invalid: seq_after must be the same in all filters"])");
    EXPECT_EQ(refused(R"("s",{"seq_after":1},{})"),
              R"(["CLOSED","s","invalid: seq_after must be the same in all filters"])");
    EXPECT_EQ(refused(R"("s",{"seq_after":1},{"seq_after":1})"), "");
    std::string many = "\"s\"";
    for (int i = 0; i < 21; ++i) many += ",{}";
    EXPECT_EQ(refused(many), R"(["CLOSED","s","invalid: too many filters"])");
  }
}

TEST(Replies, AreJsonAsTheProtocolHasIt) {
  const auto sub = *SubId::from("a\"b");
  EXPECT_EQ(event_message(sub, "{}"), R"(["EVENT","a\"b",{}])");
  EXPECT_EQ(ok_message("ab", true, ""), R"(["OK","ab",true,""])");
  EXPECT_EQ(ok_message("ab", false, "invalid: bad id"), R"(["OK","ab",false,"invalid: bad id"])");
  EXPECT_EQ(eose_message(sub, std::vector<std::string>{"finish", "seq:7"}),
            R"(["EOSE","a\"b",["finish","seq:7"]])");
  EXPECT_EQ(eose_message(sub, {}), R"(["EOSE","a\"b"])");
  EXPECT_EQ(closed_message("x\n", "error: query too slow"), R"(["CLOSED","x\n","error: query too slow"])");
  EXPECT_EQ(notice_message("hello \"you\""), R"(["NOTICE","hello \"you\""])");
  EXPECT_EQ(auth_message("c"), R"(["AUTH","c"])");
  EXPECT_EQ(count_message(sub, 3), R"(["COUNT","a\"b",{"count":3}])");
}

}  // namespace
}  // namespace todoke::nostr
