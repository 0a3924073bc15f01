// What people may do here while auth.mode is required, as one value for the keys that a connection has proven
// (docs/relay.md). Pure.
//
// Whoever sends an event of a key that the connection has proven is that key, with its rights alone;
// otherwise, and for reading, the rights of all proven keys that have agreed to the policies count together.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_table.hpp"
#include "nostr/filter.hpp"
#include "nostr/rules.hpp"
#include "relay/key_book.hpp"

namespace todoke::relay {

// Of one key.
struct Rights {
  bool is_disabled = false;            // its account
  bool lacks_consent = false;          // to the current policies
  HashSet<std::string> topics = {};    // of its active subscriptions
  HashSet<std::string> searched = {};  // those of them that open the index
};
using RightsPtr = std::shared_ptr<const Rights>;

class Allowance {
 public:
  explicit Allowance(std::vector<RightsPtr> keys) : keys_(std::move(keys)) {}

  [[nodiscard]] bool has_disabled_key() const;
  // Why nothing at all is taken or served.
  [[nodiscard]] std::optional<nostr::Reason> refusal() const;
  [[nodiscard]] bool may_use(std::string_view topic) const;
  [[nodiscard]] bool may_search(std::string_view topic) const;
  // Why these filters are not answered: where topics are the rule, each of them needs a subscription, unless
  // they ask for the node's own keys.
  [[nodiscard]] std::optional<nostr::Reason> refusal_of(std::span<const nostr::Filter> filters,
                                                        nostr::TopicPolicy policy, const KeySet& own) const;

 private:
  std::vector<RightsPtr> keys_;
};

}  // namespace todoke::relay
