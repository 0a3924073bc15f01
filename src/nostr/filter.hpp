// A filter of REQ and COUNT (NIP-01, and `seq_after`), and whether an event passes it. All conditions of a
// filter must hold; an empty list lets nothing pass. Stored and live events are matched by this one function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

// Values in order, each once.
template <class T>
class SortedSet {
 public:
  SortedSet() = default;
  explicit SortedSet(std::vector<T> values) : values_(std::move(values)) {
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  }

  template <class U>
  [[nodiscard]] bool contains(const U& value) const {
    return std::binary_search(values_.begin(), values_.end(), value);
  }
  [[nodiscard]] const std::vector<T>& values() const { return values_; }
  [[nodiscard]] bool empty() const { return values_.empty(); }

  friend bool operator==(const SortedSet&, const SortedSet&) = default;

 private:
  std::vector<T> values_;
};

// `#x`: the event has a tag of this one letter whose first value is one of these.
struct TagFilter {
  char letter;
  SortedSet<std::string> values;
  friend bool operator==(const TagFilter&, const TagFilter&) = default;
};

struct Filter {
  std::optional<SortedSet<EventId>> ids;
  std::optional<SortedSet<Pubkey>> authors;
  std::optional<SortedSet<Kind>> kinds;
  std::vector<TagFilter> tags;        // each letter once; in their order, where they were read from JSON
  std::optional<std::int64_t> since;  // inclusive, as is until
  std::optional<std::int64_t> until;

  // These say how stored events are searched; an event passes or fails without them.
  std::optional<std::uint32_t> limit;
  std::optional<Seq> seq_after;
  std::optional<std::string> search;

  // The values of `#letter`, or nullptr when the filter does not ask for it.
  [[nodiscard]] const SortedSet<std::string>* tag(char letter) const;

  friend bool operator==(const Filter&, const Filter&) = default;
};

bool matches(const Filter& filter, const Event& event);
bool matches_any(std::span<const Filter> filters, const Event& event);

struct FilterLimits {
  std::size_t filters_max = 20;    // in one REQ
  std::size_t values_max = 2'000;  // in one list; a long contact list fits
  std::size_t tags_max = 8;        // kinds of tags in one filter: each costs a lookup
};

// One filter from JSON. ids, authors, #e and #p are 64 lower-case hex digits, numbers are integers, a limit
// beyond 32 bits is the largest of them. An unknown key is `unsupported`, not ignored.
tl::expected<Filter, Reason> parse_filter(std::string_view text, const FilterLimits& limits);

}  // namespace todoke::nostr
