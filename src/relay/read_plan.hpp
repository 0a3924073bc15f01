// How a filter is looked up: which index gives its candidates. Pure. Whatever is chosen, every candidate is
// matched against the whole filter afterwards, so a choice can be slow but not wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nostr/filter.hpp"
#include "nostr/rules.hpp"

namespace todoke::relay {

enum class Path : std::uint8_t {
  nothing,  // an empty list, or since after until
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

struct ReadPlan {
  Path path = Path::nothing;
  char letter = 't';                // of Path::tag
  std::vector<std::string> values;  // of the tag, as keys of the index; or topics
  // `#t` asks for links, not for tags: a topic of the event that was not taken at its time is none.
  bool by_links = false;
  // The links alone decide: counting needs no events.
  bool links_decide = false;
};

// A product of lists up to this size is looked up pair by pair; beyond it, the one list by index and the
// other by looking at each row.
inline constexpr std::size_t kPairsMax = 64;

ReadPlan plan_read(const nostr::Filter& filter, nostr::TopicPolicy policy);

}  // namespace todoke::relay
