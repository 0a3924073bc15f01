#include "relay/read_plan.hpp"

#include <algorithm>

#include "nostr/tag_keys.hpp"
#include "relay/incoming.hpp"

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

// The tags other than `t`, those with few values first.
std::vector<const nostr::TagFilter*> narrow_tags_first(const Filter& filter) {
  std::vector<const nostr::TagFilter*> tags;
  for (const auto& tag : filter.tags) {
    if (tag.letter != 't') tags.push_back(&tag);
  }
  std::sort(tags.begin(), tags.end(), [](const auto* a, const auto* b) {
    const auto values = [](const auto* tag) { return tag->values.values().size(); };
    return values(a) != values(b) ? values(a) < values(b) : a->letter < b->letter;
  });
  return tags;
}

Way way_by_tag(Path path, char letter, const nostr::SortedSet<std::string>& values) {
  Way way{path, letter};
  for (const auto& value : values.values()) way.values.push_back(nostr::tag_value_key(value));
  return way;
}

Way way_by_mark(const nostr::SortedSet<nostr::Pubkey>& authors) {
  Way way{Path::tag, kOwnMark};
  for (const auto& author : authors.values()) way.values.push_back(author.hex());
  return way;
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
  const auto* topics = filter.tag('t');
  plan.by_links = policy == TopicPolicy::topics && topics != nullptr;
  plan.by_mark = policy == TopicPolicy::topics && topics == nullptr && filter.authors;
  if (filter.ids) {
    plan.ways.push_back({Path::ids});
    return plan;
  }
  const auto tags = narrow_tags_first(filter);
  plan.links_decide = plan.by_links && tags.empty();
  for (const auto* tag : tags) plan.ways.push_back(way_by_tag(Path::tag, tag->letter, tag->values));
  if (topics != nullptr && !plan.by_links) plan.ways.push_back(way_by_tag(Path::t, 't', *topics));
  if (plan.ways.size() >= kWaysMax) plan.ways.resize(kWaysMax - 1);
  Way other;
  if (plan.by_mark) {
    other = way_by_mark(*filter.authors);
  } else if (plan.by_links) {
    other = {path_by_topic(filter, topics->values().size()), 't', topics->values()};
  } else {
    other.path = path_without_tags(filter);
  }
  // An author's events are few. Kinds and times without a topic are broad: not worth a try beside a tag.
  const bool by_few_authors = other.path == Path::topic_author || other.path == Path::author_kind;
  if (by_few_authors) {
    plan.ways.insert(plan.ways.begin(), std::move(other));
  } else if (plan.ways.empty() || plan.by_links || plan.by_mark || other.path == Path::author) {
    plan.ways.push_back(std::move(other));
  }
  return plan;
}

void WayChoice::advanced(double seconds, std::size_t rows) {
  const auto way = next();
  const auto pace = seconds / static_cast<double>(std::max<std::size_t>(rows, 1));
  if (tried_ < ways_) ++tried_;
  if (pace > best_seconds_) {
    best_ = way;
    best_seconds_ = pace;
  }
}

}  // namespace todoke::relay
