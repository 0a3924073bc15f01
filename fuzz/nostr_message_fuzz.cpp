// Any bytes as a client's message: never a crash, never a slow answer; what is accepted can be written and
// read again, what is refused gets an answer that is JSON itself.
#include <string_view>

#include "base/json_read.hpp"
#include "nostr/event_id.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/replies.hpp"
#include "nostr/rules.hpp"
#include "nostr/topics.hpp"
#include "nostr/wire.hpp"
#include "require.hpp"

namespace {

using namespace todoke;
using namespace todoke::nostr;
using todoke::fuzz::require;

void look_at(const Event& event) {
  const auto again = parse_event(event.json(), {});
  require(again.has_value());
  require(again->json() == event.json());
  require(again->content() == event.content());
  for (const auto policy : {TopicPolicy::topics, TopicPolicy::open}) {
    RuleSettings settings;
    settings.policy = policy;
    settings.difficulty_bits_min = 1;
    (void)broken_rule(event, settings, {}, std::chrono::sys_seconds(std::chrono::seconds(1'700'000'000)));
  }
  (void)topics_of(event);
  (void)address_of(event);
}

void look_at(const SubId& sub) {
  const auto text = event_message(sub, "{}");
  require(check_json(text, kJsonDepthMax) == JsonCheck::good);
  const auto close = parse_client_message("[\"CLOSE\"," + sub.json() + "]", {});
  require(close && std::get<CloseMessage>(*close).sub == sub);
}

struct Look {
  void operator()(const EventMessage& message) const { look_at(message.event); }
  void operator()(const AuthMessage& message) const { look_at(message.event); }
  void operator()(const ReqMessage& message) const {
    require(!message.filters.empty());
    look_at(message.sub);
  }
  void operator()(const CountMessage& message) const { look_at(message.sub); }
  void operator()(const CloseMessage& message) const { look_at(message.sub); }
  void operator()(const NegOpenMessage& message) const { look_at(message.sub); }
  void operator()(const NegMsgMessage& message) const {
    const auto again = parse_client_message(neg_msg_message(message.sub, message.message), {});
    require(!again || std::get<NegMsgMessage>(*again).message == message.message);
  }
  void operator()(const NegCloseMessage& message) const { look_at(message.sub); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = parse_client_message(text, {});
  if (message) {
    require(check_json(text, kJsonDepthMax) == JsonCheck::good);
    std::visit(Look(), *message);
  } else {
    require(check_json(message.error().reply(), kJsonDepthMax) == JsonCheck::good);
  }
  return 0;
}
