// Inside this room: where a search goes on (search.hpp), as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace todoke::index {

// A document's place in time.
struct Place {
  std::int64_t created_at = 0;
  std::string event_id;  // may be empty: before every document of that second
  friend bool operator==(const Place&, const Place&) = default;
};

struct LastHit {
  std::int64_t rank = 0;
  std::string event_id;
  friend bool operator==(const LastHit&, const LastHit&) = default;
};

struct SearchCursor {
  std::int64_t as_of = 0;        // Unix seconds: ages are counted from here
  std::optional<Place> ceiling;  // the window ends before it
  std::optional<Place> floor;    // and begins with it; nothing: it is not known yet
  std::optional<LastHit> last;   // of the window
  friend bool operator==(const SearchCursor&, const SearchCursor&) = default;
};

std::string to_text(const SearchCursor& cursor);
// Nothing: to_text did not write it.
std::optional<SearchCursor> parse_cursor(std::string_view text);

}  // namespace todoke::index
