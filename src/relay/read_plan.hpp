// How a filter is looked up: which indexes can give its candidates. Pure. Whatever is chosen, every candidate
// is matched against the whole filter afterwards, so a choice can be slow but not wrong.
//
// Which of several indexes is the narrow one can't be known from the filter: `#k` with one value may fit a
// tenth of all events or a single one. So a plan names several ways, and WayChoice finds out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nostr/filter.hpp"
#include "nostr/rules.hpp"

namespace todoke::relay {

enum class Path : std::uint8_t {
  ids,
  topic,
  topic_kind,
  topic_author,
  tag,
  t,  // a plain `t` tag, topic or not
  author,
  author_kind,
  kind,
  time,
};

struct Way {
  Path path = Path::time;
  char letter = 't';                     // of Path::tag
  std::vector<std::string> values = {};  // of the tag, as keys of the index; or topics
};

struct ReadPlan {
  // Each gives every event that the filter can match, newest first; what is likely to be narrow comes first.
  // Empty: nothing can match (an empty list, or since after until).
  std::vector<Way> ways;
  // `#t` asks for links, not for tags: a topic of the event that was not taken at its time is none.
  bool by_links = false;
  // Asked for without a topic where topics are the rule: only for the node's own keys, whose events have a
  // mark (kOwnMark).
  bool by_mark = false;
  // The links alone decide: counting needs no events.
  bool links_decide = false;
};

// A product of lists up to this size is looked up pair by pair; beyond it, the one list by index and the
// other by looking at each row.
inline constexpr std::size_t kPairsMax = 64;
// Each way costs a page to try.
inline constexpr std::size_t kWaysMax = 4;

ReadPlan plan_read(const nostr::Filter& filter, nostr::TopicPolicy policy);

// By which of several ways to read the next page. A page can be read by any of them, for they agree on the
// order and on where to go on. Each is tried for one page, then the one that got further back in time with a
// row is kept: it passes over fewer events that don't match.
class WayChoice {
 public:
  // There is at least one.
  explicit WayChoice(std::size_t ways) : ways_(ways) {}

  [[nodiscard]] std::size_t next() const { return tried_ < ways_ ? tried_ : best_; }
  // How far the page of next() got.
  void advanced(double seconds, std::size_t rows);

 private:
  std::size_t ways_;
  std::size_t tried_ = 0;
  std::size_t best_ = 0;
  double best_seconds_ = -1;  // a row
};

}  // namespace todoke::relay
