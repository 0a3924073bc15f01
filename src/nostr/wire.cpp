#include "nostr/wire.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/json_escape.hpp"
#include "base/utf8.hpp"
#include "nostr/event_reader.hpp"
#include "nostr/filter_reader.hpp"
#include "nostr/replies.hpp"

namespace todoke::nostr {
namespace {

using Answer = MessageRefusal::Answer;
using Parsed = tl::expected<ClientMessage, MessageRefusal>;

Parsed refused(Answer answer, Reason reason, std::string subject = {}) {
  return tl::unexpected(MessageRefusal{answer, reason, std::move(subject), Verb::unknown});
}

// Steps through the elements of the message's array.
class Elements {
 public:
  explicit Elements(od::array array) : array_(array) {}

  // Begins, or moves on. False at the end and when the text is no JSON; bad() tells which.
  bool next() {
    if (!started_) {
      started_ = true;
      bad_ = array_.begin().get(at_) != simdjson::SUCCESS || array_.end().get(end_) != simdjson::SUCCESS;
      if (bad_) return false;
    } else {
      ++at_;
    }
    if (!(at_ != end_)) return false;
    bad_ = (*at_).get(value_) != simdjson::SUCCESS;
    return !bad_;
  }
  [[nodiscard]] bool bad() const { return bad_; }
  od::value& value() { return value_; }

 private:
  od::array array_;
  od::array_iterator at_;
  od::array_iterator end_;
  od::value value_;
  bool started_ = false;
  bool bad_ = false;
};

// The elements of one message, read once from front to back. Stops at the first fault.
class Reading {
 public:
  Reading(od::document& document, od::array array, std::string_view text, const MessageLimits& limits)
      : document_(document), elements_(array), text_(text), limits_(limits) {}

  Parsed run() {
    if (!elements_.next()) return refused(Answer::notice, Reason::missing_element);
    const auto verb = read_string(elements_.value());
    if (!verb) return refused(Answer::notice, Reason::unknown_verb);
    if (verb->text == "EVENT") return named(Verb::event, read_event<EventMessage>());
    if (verb->text == "REQ") return named(Verb::req, read_query<ReqMessage>());
    if (verb->text == "CLOSE") return named(Verb::close, read_close<CloseMessage>());
    if (verb->text == "COUNT") return named(Verb::count, read_query<CountMessage>());
    if (verb->text == "AUTH") return named(Verb::auth, read_event<AuthMessage>());
    if (verb->text == "NEG-OPEN") return named(Verb::neg_open, read_neg_open());
    if (verb->text == "NEG-MSG") return named(Verb::neg_msg, read_neg_msg());
    if (verb->text == "NEG-CLOSE") return named(Verb::neg_close, read_close<NegCloseMessage>());
    return refused(Answer::notice, Reason::unknown_verb);
  }

 private:
  static Parsed named(Verb verb, Parsed parsed) {
    if (!parsed) parsed.error().verb = verb;
    return parsed;
  }

  template <class Message>
  Parsed read_event() {
    od::object object;
    if (!elements_.next()) return refused(Answer::ok, Reason::missing_element);
    const auto start = elements_.value().raw_json_token().data();
    if (elements_.value().get_object().get(object) != simdjson::SUCCESS) {
      return refused(Answer::ok, Reason::event_not_object);
    }
    auto& reader = thread_event_reader();
    if (const auto reason = reader.read(object, limits_.event)) return refused(Answer::ok, *reason);
    const char* end = nullptr;
    if (document_.current_location().get(end) != simdjson::SUCCESS) {
      return refused(Answer::notice, Reason::message_not_json);
    }
    if (elements_.next()) return refused(Answer::ok, Reason::extra_element);
    if (!ended()) return refused(Answer::notice, Reason::message_not_json);
    if (reader.skipped() && check_json(text_, kJsonDepthMax) != JsonCheck::good) {
      return refused(Answer::notice, Reason::message_not_json);
    }
    auto event = reader.finish({start, static_cast<std::size_t>(end - start)}, limits_.event);
    if (!event) return refused(Answer::ok, Reason::event_too_large);
    return Message{std::move(*event)};
  }

  template <class Message>
  Parsed read_query() {
    std::string sent;
    const auto sub = read_sub(sent);
    if (!sub) return without_name(Answer::closed, std::move(sent));
    const auto closed = [&](Reason reason) { return refused(Answer::closed, reason, sub->text()); };
    std::vector<Filter> filters;
    for (std::size_t sent_filters = 0; elements_.next(); ++sent_filters) {
      od::object object;
      if (sent_filters == limits_.filter.filters_max) return closed(Reason::too_many_filters);
      if (elements_.value().get_object().get(object) != simdjson::SUCCESS) {
        return closed(Reason::filter_not_object);
      }
      auto filter = read_filter(object, limits_.filter);
      if (!filter) return closed(filter.error());
      if (!filters.empty() && filter->seq_after != filters.front().seq_after) {
        return closed(Reason::seq_after_differs);
      }
      if (std::find(filters.begin(), filters.end(), *filter) == filters.end()) {
        filters.push_back(std::move(*filter));
      }
    }
    if (!ended()) return refused(Answer::notice, Reason::message_not_json);
    if (filters.empty()) return closed(Reason::no_filters);
    return Message{*sub, std::move(filters)};
  }

  // Without a name that can be repeated there is nothing to close.
  Parsed without_name(Answer answer, std::string sent) const {
    if (sub_is_missing_) return refused(Answer::notice, Reason::missing_element);
    const bool nameable = sub_is_string_ && sent.size() <= kEchoBytesMax;
    return refused(nameable ? answer : Answer::notice, Reason::bad_subscription_id,
                   nameable ? std::move(sent) : std::string());
  }

  Parsed read_neg_open() {
    std::string sent;
    const auto sub = read_sub(sent);
    if (!sub) return without_name(Answer::neg_err, std::move(sent));
    const auto refuse = [&](Reason reason) { return refused(Answer::neg_err, reason, sub->text()); };
    od::object object;
    if (!elements_.next()) return refuse(Reason::missing_element);
    if (elements_.value().get_object().get(object) != simdjson::SUCCESS) {
      return refuse(Reason::filter_not_object);
    }
    auto filter = read_filter(object, limits_.filter);
    if (!filter) return refuse(filter.error());
    std::string message;
    if (const auto bad = read_neg_bytes(message)) return refuse(*bad);
    if (!ended()) return refused(Answer::notice, Reason::message_not_json);
    return NegOpenMessage{*sub, std::move(*filter), std::move(message)};
  }

  Parsed read_neg_msg() {
    std::string sent;
    const auto sub = read_sub(sent);
    if (!sub) return without_name(Answer::neg_err, std::move(sent));
    std::string message;
    if (const auto bad = read_neg_bytes(message)) return refused(Answer::neg_err, *bad, sub->text());
    if (!ended()) return refused(Answer::notice, Reason::message_not_json);
    return NegMsgMessage{*sub, std::move(message)};
  }

  // The last element: hex of either case.
  std::optional<Reason> read_neg_bytes(std::string& message) {
    if (!elements_.next()) return Reason::missing_element;
    const auto string = read_string(elements_.value());
    if (!string || string->text.size() % 2 != 0) return Reason::neg_bad_message;
    std::string hex(string->text);
    std::transform(hex.begin(), hex.end(), hex.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
    message.resize(hex.size() / 2);
    if (!from_hex(hex, {reinterpret_cast<std::uint8_t*>(message.data()), message.size()})) {
      return Reason::neg_bad_message;
    }
    if (elements_.next()) return Reason::extra_element;
    return std::nullopt;
  }

  template <class Message>
  Parsed read_close() {
    std::string sent;
    const auto sub = read_sub(sent);
    if (!sub) {
      return refused(Answer::notice, sub_is_missing_ ? Reason::missing_element : Reason::bad_subscription_id);
    }
    if (elements_.next()) return refused(Answer::notice, Reason::extra_element);
    if (!ended()) return refused(Answer::notice, Reason::message_not_json);
    return Message{*sub};
  }

  std::optional<SubId> read_sub(std::string& sent) {
    sub_is_missing_ = !elements_.next();
    if (sub_is_missing_) return std::nullopt;
    const auto string = read_string(elements_.value());
    if (!string || string->form == EscapeForm::lone_surrogate) return std::nullopt;
    sub_is_string_ = true;
    sent = string->text;
    return SubId::from(string->text);
  }

  bool ended() { return !elements_.bad() && at_end(document_); }

  od::document& document_;
  Elements elements_;
  std::string_view text_;
  const MessageLimits& limits_;
  bool sub_is_missing_ = false;
  bool sub_is_string_ = false;
};

Parsed attempt(std::string_view text, const MessageLimits& limits) {
  od::document document;
  od::array array;
  if (thread_reader().read(text).get(document) != simdjson::SUCCESS) {
    return refused(Answer::notice, Reason::message_not_json);
  }
  if (document.get_array().get(array) != simdjson::SUCCESS) {
    return refused(Answer::notice, Reason::message_not_array);
  }
  return Reading(document, array, text, limits).run();
}

// The id in the second element of a message whose event was refused.
std::string rescue_id_of_message(std::string_view text) {
  od::document document;
  od::array array;
  od::object object;
  if (thread_reader().read(text).get(document) != simdjson::SUCCESS ||
      document.get_array().get(array) != simdjson::SUCCESS) {
    return {};
  }
  Elements elements(array);
  if (!elements.next() || !elements.next()) return {};
  if (elements.value().get_object().get(object) != simdjson::SUCCESS) return {};
  return id_for_answer(object);
}

}  // namespace

SubId::SubId(std::string_view text) : text_(text) {
  append_valid_json_string(json_, text);
}

std::optional<SubId> SubId::from(std::string_view text) {
  const auto characters = count_characters(text);
  if (characters == 0 || characters > kCharactersMax) return std::nullopt;
  return SubId(text);
}

std::string MessageRefusal::reply() const {
  switch (answer) {
    case Answer::notice:
      return notice_message(text_of(reason));
    case Answer::ok:
      return ok_message(subject, false, text_of(reason));
    case Answer::neg_err:
      return neg_err_message(subject, text_of(reason));
    case Answer::closed:
      break;
  }
  return closed_message(subject, text_of(reason));
}

tl::expected<ClientMessage, MessageRefusal> parse_client_message(std::string_view text,
                                                                 const MessageLimits& limits) {
  if (text.size() > limits.message_bytes_max) return refused(Answer::notice, Reason::message_too_long);
  auto parsed = attempt(text, limits);
  if (parsed) return parsed;
  // The reading above stops at the first fault it sees; whether that is one of JSON itself is asked only now.
  switch (check_json(text, kJsonDepthMax)) {
    case JsonCheck::good:
      break;
    case JsonCheck::too_deep:
      return refused(Answer::notice, Reason::message_too_deep);
    case JsonCheck::not_json:
      return refused(Answer::notice, Reason::message_not_json);
  }
  if (parsed.error().answer == Answer::ok) parsed.error().subject = rescue_id_of_message(text);
  return parsed;
}

}  // namespace todoke::nostr
