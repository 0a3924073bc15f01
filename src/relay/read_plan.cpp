#include "relay/read_plan.hpp"

#include "nostr/tag_keys.hpp"

namespace todoke::relay {
namespace {

using nostr::Filter;
using nostr::TopicPolicy;

bool matches_nothing(const Filter& filter) {
  if (filter.ids && filter.ids->empty()) return true;
  if (filter.authors && filter.authors->empty()) return true;
  if (filter.kinds && filter.kinds->empty()) return true;
  for (const auto& tag : filter.tags) {
    if (tag.values.empty()) return true;
  }
  return filter.since && filter.until && *filter.since > *filter.until;
}

// The tag with the fewest values, other than `t`.
const nostr::TagFilter* narrowest_tag(const Filter& filter) {
  const nostr::TagFilter* best = nullptr;
  for (const auto& tag : filter.tags) {
    if (tag.letter == 't') continue;
    if (best == nullptr || tag.values.values().size() < best->values.values().size()) best = &tag;
  }
  return best;
}

bool few(std::size_t a, std::size_t b) {
  return a * b <= kPairsMax;
}

Path path_by_topic(const Filter& filter, std::size_t topics) {
  if (filter.authors && few(topics, filter.authors->values().size())) return Path::topic_author;
  if (filter.kinds && few(topics, filter.kinds->values().size())) return Path::topic_kind;
  return Path::topic;
}

Path path_without_tags(const Filter& filter) {
  if (filter.authors && filter.kinds && few(filter.authors->values().size(), filter.kinds->values().size())) {
    return Path::author_kind;
  }
  if (filter.authors) return Path::author;
  return filter.kinds ? Path::kind : Path::time;
}

}  // namespace

ReadPlan plan_read(const Filter& filter, TopicPolicy policy) {
  ReadPlan plan;
  if (matches_nothing(filter)) return plan;
  plan.by_links = policy == TopicPolicy::topics && filter.tag('t') != nullptr;
  if (filter.ids) {
    plan.path = Path::ids;
    return plan;
  }
  if (const auto* tag = narrowest_tag(filter)) {
    plan.path = Path::tag;
    plan.letter = tag->letter;
    for (const auto& value : tag->values.values()) plan.values.push_back(nostr::tag_value_key(value));
    return plan;
  }
  if (const auto* topics = filter.tag('t')) {
    if (policy == TopicPolicy::topics) {
      plan.values = topics->values();
      plan.path = path_by_topic(filter, plan.values.size());
      plan.links_decide = true;
    } else {
      plan.path = Path::t;
      for (const auto& value : topics->values()) plan.values.push_back(nostr::tag_value_key(value));
    }
    return plan;
  }
  plan.path = path_without_tags(filter);
  return plan;
}

}  // namespace todoke::relay
