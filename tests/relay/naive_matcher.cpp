#include "naive_matcher.hpp"

#include <algorithm>
#include <set>

#include "base/json_writer.hpp"

namespace todoke::test {
namespace {

template <class T>
bool is_in(const T& value, const std::vector<T>& list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool comes_first(const NaiveEvent& a, const NaiveEvent& b) {
  return a.created_at != b.created_at ? a.created_at > b.created_at : a.id < b.id;
}

template <class T>
void write_list(JsonWriter& json, std::string_view key, const std::vector<T>& list) {
  json.key(key).begin_array();
  for (const auto& value : list) json.value(value);
  json.end_array();
}

}  // namespace

std::string NaiveFilter::json() const {
  JsonWriter json;
  json.begin_object();
  if (ids) write_list(json, "ids", *ids);
  if (authors) write_list(json, "authors", *authors);
  if (kinds) write_list(json, "kinds", *kinds);
  for (const auto& [letter, values] : tags) write_list(json, std::string{'#', letter}, values);
  if (since) json.member("since", *since);
  if (until) json.member("until", *until);
  if (limit) json.member("limit", *limit);
  if (seq_after) json.member("seq_after", *seq_after);
  json.end_object();
  return std::move(json).text();
}

bool passes(const NaiveEvent& event, const NaiveFilter& filter) {
  if (filter.ids && !is_in(event.id, *filter.ids)) return false;
  if (filter.authors && !is_in(event.pubkey, *filter.authors)) return false;
  if (filter.kinds && !is_in(event.kind, *filter.kinds)) return false;
  if (filter.since && event.created_at < *filter.since) return false;
  if (filter.until && event.created_at > *filter.until) return false;
  for (const auto& [letter, values] : filter.tags) {
    bool found = false;
    for (const auto& tag : event.tags) {
      if (tag.size() >= 2 && tag[0] == std::string(1, letter) && is_in(tag[1], values)) found = true;
    }
    if (!found) return false;
  }
  return true;
}

bool passes_any(const NaiveEvent& event, const std::vector<NaiveFilter>& filters) {
  return std::any_of(filters.begin(), filters.end(),
                     [&](const auto& filter) { return passes(event, filter); });
}

bool may_see(const NaiveEvent& event, const std::vector<std::string>& keys) {
  if (event.kind != 4 && event.kind != 1'059 && event.kind != 21'059) return true;
  return std::any_of(keys.begin(), keys.end(), [&](const auto& key) {
    return key == event.pubkey || std::any_of(event.tags.begin(), event.tags.end(), [&](const auto& tag) {
             return tag.size() >= 2 && tag[0] == "p" && tag[1] == key;
           });
  });
}

bool asks_for_private_only(const std::vector<NaiveFilter>& filters) {
  return std::all_of(filters.begin(), filters.end(), [](const auto& filter) {
    return filter.kinds && !filter.kinds->empty() &&
           std::all_of(filter.kinds->begin(), filter.kinds->end(),
                       [](int kind) { return kind == 4 || kind == 1'059 || kind == 21'059; });
  });
}

std::string naive_address(const NaiveEvent& event) {
  auto start = std::to_string(event.kind) + ":" + event.pubkey + ":";
  if (event.kind == 0 || event.kind == 3 || (event.kind >= 10'000 && event.kind < 20'000)) return start;
  if (event.kind < 30'000 || event.kind >= 40'000) return "";
  for (const auto& tag : event.tags) {
    if (!tag.empty() && tag[0] == "d") return start + (tag.size() > 1 ? tag[1] : "");
  }
  return start;
}

bool wins(const NaiveEvent& a, const NaiveEvent& b) {
  return comes_first(a, b);
}

std::vector<NaiveEvent> naive_effective(const std::vector<NaiveEvent>& events) {
  std::vector<NaiveEvent> effective;
  for (const auto& event : events) {
    const auto address = naive_address(event);
    const auto loses = std::any_of(events.begin(), events.end(), [&](const auto& other) {
      return !address.empty() && naive_address(other) == address && wins(other, event);
    });
    if (!loses) effective.push_back(event);
  }
  return effective;
}

NaiveAnswer naive_answer(const std::vector<NaiveEvent>& effective, const std::vector<NaiveFilter>& filters,
                         std::size_t limit_default) {
  auto sorted = effective;
  std::sort(sorted.begin(), sorted.end(), comes_first);
  NaiveAnswer answer;
  std::set<std::string> chosen;
  for (const auto& filter : filters) {
    std::size_t left = filter.limit.value_or(limit_default);
    if (left == 0) answer.more = true;
    for (const auto& event : sorted) {
      if (!passes(event, filter)) continue;
      if (left == 0) {
        answer.more = true;
        break;
      }
      --left;
      chosen.insert(event.id);
    }
  }
  for (const auto& event : sorted) {
    if (chosen.contains(event.id)) answer.ids.push_back(event.id);
  }
  return answer;
}

NaiveAnswer naive_answer_by_seq(const std::vector<NaiveEvent>& effective, const NaiveFilter& filter,
                                const std::map<std::string, std::int64_t>& seqs, std::size_t limit_default) {
  auto sorted = effective;
  std::sort(sorted.begin(), sorted.end(),
            [&](const auto& a, const auto& b) { return seqs.at(a.id) < seqs.at(b.id); });
  NaiveAnswer answer;
  answer.more = filter.limit == 0U;
  for (const auto& event : sorted) {
    if (seqs.at(event.id) <= filter.seq_after.value() || !passes(event, filter)) continue;
    if (answer.ids.size() == filter.limit.value_or(limit_default)) {
      answer.more = true;
      break;
    }
    answer.ids.push_back(event.id);
  }
  return answer;
}

}  // namespace todoke::test
