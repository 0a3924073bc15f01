// What the relay asks of a search index (NIP-50): a small interface, so that neither knows the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"

namespace todoke::outbox {

struct SearchRequest {
  std::string text;
  std::optional<std::vector<std::string>> topics;
  std::optional<std::vector<std::int32_t>> kinds;
  std::optional<std::vector<std::string>> authors;  // hex
  std::optional<std::int64_t> since;
  std::optional<std::int64_t> until;
  std::size_t limit = 0;
};

class SearchPort {
 public:
  virtual ~SearchPort() = default;
  // Ids of events, the best first. A hit may have lost its effect a moment ago: the caller looks.
  virtual Task<std::vector<std::string>> find(SearchRequest request, Deadline deadline) = 0;
};

}  // namespace todoke::outbox
