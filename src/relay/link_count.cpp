#include "relay/link_count.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "nostr/kinds.hpp"
#include "relay/read_plan.hpp"

namespace todoke::relay {

std::string array_text(const std::vector<std::string>& values) {
  std::string text = "{";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + '}';
}

std::vector<std::int32_t> private_kinds() {
  return {nostr::kPrivateKinds.begin(), nostr::kPrivateKinds.end()};
}

std::optional<pg::Params> link_count(const std::vector<nostr::Filter>& filters, nostr::TopicPolicy policy,
                                     const Viewer& viewer) {
  std::set<std::string> all_topics;
  std::vector<std::int64_t> since;
  std::vector<std::int64_t> until;
  std::vector<std::string> topics;
  std::vector<std::optional<std::string>> kinds;
  std::vector<std::optional<std::string>> authors;
  for (const auto& filter : filters) {
    const auto plan = plan_read(filter, policy);
    if (plan.ways.empty()) continue;
    if (!plan.links_decide || filter.seq_after) return std::nullopt;
    const auto& asked = filter.tag('t')->values();
    all_topics.insert(asked.begin(), asked.end());
    since.push_back(filter.since.value_or(std::numeric_limits<std::int64_t>::min()));
    until.push_back(filter.until.value_or(std::numeric_limits<std::int64_t>::max()));
    topics.push_back(array_text(asked));
    auto& kind = kinds.emplace_back();
    if (filter.kinds) {
      std::vector<std::string> numbers;
      for (const auto number : filter.kinds->values()) numbers.push_back(std::to_string(number));
      kind = array_text(numbers);
    }
    auto& author = authors.emplace_back();
    if (filter.authors) {
      std::vector<std::string> keys;
      for (const auto& key : filter.authors->values()) keys.push_back(key.hex());
      author = array_text(keys);
    }
  }
  // Without a filter that can match anything the bounds are of nothing.
  const auto oldest = since.empty() ? 0 : *std::min_element(since.begin(), since.end());
  const auto newest = until.empty() ? 0 : *std::max_element(until.begin(), until.end());
  std::vector<std::string> keys;
  for (const auto& key : viewer.keys) keys.push_back(key.hex());
  pg::Params params(oldest, newest, viewer.is_authenticated(),
                    std::vector<std::string>(all_topics.begin(), all_topics.end()), keys, private_kinds());
  params.add(since).add(until).add(topics).add(kinds).add(authors);
  return params;
}

}  // namespace todoke::relay
