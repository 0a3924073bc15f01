// The decisions of the intake, without a database: the answer to each post of a batch. Posts of one key
// behave as if one came after the other, in the order in which they stand in the batch.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orders/intake/order_state.hpp"

namespace todoke::orders {

// An order on its way into the database.
struct Offer {
  std::string key;
  std::string digest;
  std::string document;  // stored_json of the order
  std::optional<std::string> trace_id;
};

enum class IntakeVerdict {
  accepted,     // taken by this post
  replayed,     // the same order was taken before
  conflict,     // the key was taken before, by another order
  unavailable,  // nothing was taken
  unknown,      // it may have been taken: no answer to the commit, and none to the question after it
  failed,       // the database refuses this one order: a mistake in the program
};

struct IntakeOutcome {
  IntakeVerdict verdict = IntakeVerdict::unavailable;
  OrderState state;  // of the first three
};

// For each offer the index of the first one of its key: itself, where there is none before it.
std::vector<std::size_t> first_of_key(std::span<const Offer* const> offers);

// The state of a key after the batch was committed.
struct KeyFate {
  bool taken_now = false;  // by this batch
  // An earlier try to commit this batch got no answer: the row in the database may be its work.
  bool maybe_ours = false;
  std::optional<OrderState> stored =
      std::nullopt;  // of a key that was not taken now; nothing: it vanished meanwhile
};
IntakeOutcome judge(const Offer& offer, bool is_first, const Offer& first, const KeyFate& fate);

}  // namespace todoke::orders
