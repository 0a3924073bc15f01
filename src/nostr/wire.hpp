// What a client may send: EVENT, REQ, CLOSE, COUNT, AUTH, NEG-OPEN, NEG-MSG, NEG-CLOSE. Text in, a typed
// message or a typed refusal out; the refusal knows which answer it asks for, so that every EVENT gets an OK,
// every REQ or COUNT a CLOSED, and every NEG-OPEN or NEG-MSG a NEG-ERR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/filter.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

// 1 to 64 characters (code points) of any kind.
class SubId {
 public:
  static constexpr std::size_t kCharactersMax = 64;
  // `text` is valid UTF-8.
  static std::optional<SubId> from(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  // As a JSON string, ready to be put into a message.
  [[nodiscard]] const std::string& json() const { return json_; }

  friend bool operator==(const SubId& a, const SubId& b) { return a.text_ == b.text_; }

 private:
  explicit SubId(std::string_view text);
  std::string text_;
  std::string json_;
};

struct EventMessage {
  Event event;
};
struct AuthMessage {
  Event event;
};
struct ReqMessage {
  SubId sub;
  std::vector<Filter> filters;  // at least one, equal ones once; seq_after is the same in all
};
struct CountMessage {
  SubId sub;
  std::vector<Filter> filters;
};
struct CloseMessage {
  SubId sub;
};
// NIP-77. The names of reconciliations have nothing to do with those of subscriptions.
struct NegOpenMessage {
  SubId sub;
  Filter filter;
  std::string message;  // of negentropy.hpp, as bytes
};
struct NegMsgMessage {
  SubId sub;
  std::string message;
};
struct NegCloseMessage {
  SubId sub;
};
using ClientMessage = std::variant<EventMessage, ReqMessage, CloseMessage, CountMessage, AuthMessage,
                                   NegOpenMessage, NegMsgMessage, NegCloseMessage>;

enum class Verb : std::uint8_t { unknown, event, req, close, count, auth, neg_open, neg_msg, neg_close };

struct MessageRefusal {
  enum class Answer : std::uint8_t { notice, ok, closed, neg_err };
  Answer answer;
  Reason reason;
  std::string
      subject;  // the event's id for ok, the subscription's id for closed and neg_err, as they were sent
  Verb verb = Verb::unknown;  // of a message that is JSON

  // The message to send back.
  [[nodiscard]] std::string reply() const;
};

struct MessageLimits {
  std::size_t message_bytes_max = 128 * 1024;  // twice the largest event: room for how it is written
  EventLimits event;
  FilterLimits filter;
};

tl::expected<ClientMessage, MessageRefusal> parse_client_message(std::string_view text,
                                                                 const MessageLimits& limits);

}  // namespace todoke::nostr
