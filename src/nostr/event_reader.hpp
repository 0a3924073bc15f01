// Inside this room: reads an event out of a larger document without copying it first.
#pragma once

#include <optional>
#include <string>

#include "base/json_read.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/event_parts.hpp"

namespace todoke::nostr {

class EventReader {
 public:
  // Reads the object to its end. A refusal may also mean that the text is no JSON: check_json tells.
  std::optional<Reason> read(od::object object, const EventLimits& limits);

  // True when members were passed over unread, so that only check_json can say whether the text is JSON.
  [[nodiscard]] bool skipped() const { return skipped_; }

  // The event that was read from `received`, which begins at its brace and may have white space after it.
  // Keeps the received text where that is compact and canonical, else writes it anew. Nothing: too large.
  [[nodiscard]] std::optional<Event> finish(std::string_view received, const EventLimits& limits) const;

 private:
  std::optional<Reason> read_member(unsigned member, od::value& value, const EventLimits& limits);
  std::optional<Reason> read_tags(od::value& value, const EventLimits& limits);
  std::optional<Reason> note_string(const JsonString& string);

  EventParts parts_;
  std::string_view content_raw_;
  const char* tags_start_ = nullptr;
  std::size_t tags_size_ = 0;  // of the tags without white space
  bool canonical_ = true;      // all strings are
  bool skipped_ = false;
};

// One for each thread, to reuse its memory.
EventReader& thread_event_reader();

// The id that an answer about a refused event names.
std::string id_for_answer(od::object object);

}  // namespace todoke::nostr
