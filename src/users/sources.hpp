// What other rooms know: labels of events and people, trust, what the node says of itself. Small interfaces,
// so that the User API needs none of these rooms; where there is none, its routes answer 503 NOT_AVAILABLE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"

namespace todoke::users {

// Both throw what the database throws; a page is bounded by `limit`.
class LabelSource {
 public:
  virtual ~LabelSource() = default;

  struct Page {
    std::vector<std::string> events;  // signed labels (kind 39006) as JSON, the newest first
    std::string cursor;               // empty: that was all
  };
  // `target`: event:<id> or pubkey:<hex>.
  virtual Task<Page> labels_of(std::string target, std::size_t limit, std::string cursor,
                               Deadline deadline) = 0;
  // The topics of what the target is, so that a subscription to one of them opens its labels.
  virtual Task<std::vector<std::string>> topics_of(std::string target, Deadline deadline) = 0;
};

class TrustSource {
 public:
  virtual ~TrustSource() = default;

  enum class Method : std::uint8_t { report_based, communication_density };
  // The answer of the API as JSON; nothing: nothing is known of the subject, a public key in hex.
  virtual Task<std::optional<std::string>> score_of(Method method, std::string subject,
                                                    Deadline deadline) = 0;
};

// The node's own descriptors and topic services.
class BootstrapSource {
 public:
  virtual ~BootstrapSource() = default;

  struct Entry {
    std::string event;  // signed, as JSON
    std::int64_t created_at = 0;
  };
  struct Hints {
    std::int64_t last = 0;  // what the next question says as `since`
    std::vector<Entry> entries;
  };
  // All of these throw what the database throws.
  virtual Task<std::vector<Entry>> nodes(Deadline deadline) = 0;
  virtual Task<std::vector<Entry>> topic_services(std::string topic, Deadline deadline) = 0;
  // What was published since.
  virtual Task<Hints> hints_after(std::int64_t since, Deadline deadline) = 0;
};

}  // namespace todoke::users
