// What nodes ask each other to fill what they missed: Nostr's own messages, each question on a stream of its
// own, with all of its answer, one message in a line. Pure.
//
//   ["NEG-OPEN", "fill", {"#t": [topic], "since": …, "until": …}, hex]   NEG-MSG or NEG-ERR
//   ["NEG-MSG", "fill", hex]                                             NEG-MSG or NEG-ERR
//   ["REQ", "fill", {"#t": [topic], "ids": […]}]                         EVENT …, EOSE; or CLOSED
//   ["NEWS", topic]                                                      nothing: the topic has been filled
//
// A node asks another one about one set at a time; NEG-OPEN replaces the one before.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nostr/relay_message.hpp"
#include "nostr/texts.hpp"
#include "outbox/gossip_port.hpp"

namespace todoke::gossip {

// The questions, as text.
std::string open_question(const outbox::FillSpan& span, std::string_view message);
std::string next_question(std::string_view message);
std::string events_question(const std::string& topic, std::span<const nostr::EventId> ids);
std::string news_question(const std::string& topic);

// A question that was read.
struct OpenQuestion {
  outbox::FillSpan span;
  std::string message;
};
struct NextQuestion {
  std::string message;
};
struct EventsQuestion {
  std::string topic;
  std::vector<nostr::EventId> ids;
};
struct NewsQuestion {
  std::string topic;
};
using FillQuestion = std::variant<OpenQuestion, NextQuestion, EventsQuestion, NewsQuestion>;
// Nothing for what is none of these.
std::optional<FillQuestion> read_question(std::string_view text);

// The answers, as text.
std::string set_answer(std::string_view message);
std::string set_refusal(nostr::Reason why);
std::string events_refusal(nostr::Reason why);
// `more`: not all of them fit.
std::string events_answer(std::span<const std::string_view> events, bool more);

// The messages of an answer; nothing where a line is none.
std::optional<std::vector<nostr::RelayMessage>> read_answer(std::string_view text);
// The bytes of a NEG-MSG; nothing where it is no hex.
std::optional<std::string> message_of(const nostr::RelayMessage& answer);

}  // namespace todoke::gossip
