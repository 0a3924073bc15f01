#include "gossip/fill_wire.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "nostr/filter_writer.hpp"
#include "nostr/replies.hpp"
#include "nostr/wire.hpp"

namespace todoke::gossip {
namespace {

constexpr std::string_view kFillSub = "fill";
constexpr std::string_view kNewsStart = R"(["NEWS",)";
// Of a REQ: an answer of 2 MiB has room for as many of the usual size.
constexpr std::size_t kIdsMax = 1'000;
constexpr std::size_t kFillQuestionBytesMax = 256 * 1024;

const nostr::SubId& fill_sub() {
  static const auto kSub = nostr::SubId::from(kFillSub).value();
  return kSub;
}

nostr::Filter filter_of(const std::string& topic) {
  nostr::Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({topic})});
  return filter;
}

// One topic, and nothing else but a time.
bool is_span(const nostr::Filter& filter) {
  return filter.tags.size() == 1 && filter.tag('t') != nullptr && filter.tag('t')->values().size() == 1 &&
         !filter.authors && !filter.kinds && !filter.limit && !filter.seq_after && !filter.search;
}

const std::string& topic_of(const nostr::Filter& filter) {
  return filter.tag('t')->values().front();
}

std::optional<FillQuestion> question_of(nostr::NegOpenMessage open) {
  if (!is_span(open.filter) || open.filter.ids) return std::nullopt;
  return OpenQuestion{{topic_of(open.filter), open.filter.since, open.filter.until}, std::move(open.message)};
}

std::optional<FillQuestion> question_of(const nostr::ReqMessage& request) {
  const auto& filter = request.filters.front();
  if (request.filters.size() != 1 || !is_span(filter) || !filter.ids) return std::nullopt;
  if (filter.ids->empty() || filter.ids->values().size() > kIdsMax) return std::nullopt;
  return EventsQuestion{topic_of(filter), filter.ids->values()};
}

std::optional<FillQuestion> news_of(std::string_view text) {
  const auto json = read_json(text);
  if (!json || !json->is(JsonValue::Kind::array) || json->values.size() != 2) return std::nullopt;
  if (!json->values[1].is(JsonValue::Kind::string)) return std::nullopt;
  return NewsQuestion{json->values[1].text};
}

}  // namespace

std::string open_question(const outbox::FillSpan& span, std::string_view message) {
  auto filter = filter_of(span.topic);
  filter.since = span.since;
  filter.until = span.until;
  return fmt::format(R"(["NEG-OPEN","{}",{},"{}"])", kFillSub, nostr::filter_json(filter),
                     to_hex(as_bytes(message)));
}

std::string next_question(std::string_view message) {
  return fmt::format(R"(["NEG-MSG","{}","{}"])", kFillSub, to_hex(as_bytes(message)));
}

std::string events_question(const std::string& topic, std::span<const nostr::EventId> ids) {
  auto filter = filter_of(topic);
  filter.ids.emplace(std::vector<nostr::EventId>(ids.begin(), ids.end()));
  return fmt::format(R"(["REQ","{}",{}])", kFillSub, nostr::filter_json(filter));
}

std::string news_question(const std::string& topic) {
  JsonWriter json;
  json.begin_array().value("NEWS").value(topic).end_array();
  return std::move(json).text();
}

std::optional<FillQuestion> read_question(std::string_view text) {
  if (text.size() > kFillQuestionBytesMax) return std::nullopt;
  if (text.starts_with(kNewsStart)) return news_of(text);
  nostr::MessageLimits limits;
  limits.message_bytes_max = kFillQuestionBytesMax;
  auto message = nostr::parse_client_message(text, limits);
  if (!message) return std::nullopt;
  if (auto* open = std::get_if<nostr::NegOpenMessage>(&*message)) return question_of(std::move(*open));
  if (auto* next = std::get_if<nostr::NegMsgMessage>(&*message))
    return NextQuestion{std::move(next->message)};
  if (const auto* request = std::get_if<nostr::ReqMessage>(&*message)) return question_of(*request);
  return std::nullopt;
}

std::string set_answer(std::string_view message) {
  return nostr::neg_msg_message(fill_sub(), message);
}

std::string set_refusal(nostr::Reason why) {
  return nostr::neg_err_message(kFillSub, nostr::text_of(why));
}

std::string events_refusal(nostr::Reason why) {
  return nostr::closed_message(kFillSub, nostr::text_of(why));
}

std::string events_answer(std::span<const std::string_view> events, bool more) {
  std::string answer;
  for (const auto event : events) answer.append(nostr::event_message(fill_sub(), event)).push_back('\n');
  const std::string hints[] = {more ? "more" : "finish"};
  return answer.append(nostr::eose_message(fill_sub(), hints));
}

std::optional<std::vector<nostr::RelayMessage>> read_answer(std::string_view text) {
  std::vector<nostr::RelayMessage> messages;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto message = nostr::parse_relay_message(text.substr(0, end));
    if (!message) return std::nullopt;
    messages.push_back(std::move(*message));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return messages;
}

std::optional<std::string> message_of(const nostr::RelayMessage& answer) {
  std::string bytes(answer.text.size() / 2, '\0');
  if (!from_hex(answer.text, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}))
    return std::nullopt;
  return bytes;
}

}  // namespace todoke::gossip
