// NIP-01's rules in the plainest form, for comparison: what a filter asks for, which events pass it, which
// versions are in effect. Shares nothing with the relay's own matcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace todoke::test {

struct NaiveEvent {
  std::string id;
  std::string pubkey;
  int kind = 1;
  std::int64_t created_at = 0;
  std::vector<std::vector<std::string>> tags;
  std::string json;
};

struct NaiveFilter {
  std::optional<std::vector<std::string>> ids;
  std::optional<std::vector<std::string>> authors;
  std::optional<std::vector<int>> kinds;
  std::map<char, std::vector<std::string>> tags;
  std::optional<std::int64_t> since;
  std::optional<std::int64_t> until;
  std::optional<std::size_t> limit;
  std::optional<std::int64_t> seq_after;

  [[nodiscard]] std::string json() const;
};

bool passes(const NaiveEvent& event, const NaiveFilter& filter);
bool passes_any(const NaiveEvent& event, const std::vector<NaiveFilter>& filters);

// Whether a client that has proven these keys may see it: direct messages and gift wraps are for those who
// sent them and those they name.
bool may_see(const NaiveEvent& event, const std::vector<std::string>& keys);
// Whether all filters ask for such kinds only, by their numbers.
bool asks_for_private_only(const std::vector<NaiveFilter>& filters);

// `<kind>:<pubkey>:<d>` for replaceable and addressable kinds, "" for others.
std::string naive_address(const NaiveEvent& event);
// Whether `a` wins over `b` where both have the same address.
bool wins(const NaiveEvent& a, const NaiveEvent& b);
// Those that no other one replaces.
std::vector<NaiveEvent> naive_effective(const std::vector<NaiveEvent>& events);

struct NaiveAnswer {
  std::vector<std::string> ids;
  bool more = false;
};
// The stored events for a REQ: each filter with its limit, merged, newest first. A limit of 0 says `more` in
// any case.
NaiveAnswer naive_answer(const std::vector<NaiveEvent>& effective, const std::vector<NaiveFilter>& filters,
                         std::size_t limit_default);
// The same for one filter with seq_after, in the order of the log.
NaiveAnswer naive_answer_by_seq(const std::vector<NaiveEvent>& effective, const NaiveFilter& filter,
                                const std::map<std::string, std::int64_t>& seqs, std::size_t limit_default);

}  // namespace todoke::test
