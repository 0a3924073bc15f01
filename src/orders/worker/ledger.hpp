// The ledger's part in a try. It is the truth about an outcome: it ends in the same one as the row, in the
// same transaction, and where it has ended already, the row follows it and nothing is sent. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "queue/decision.hpp"

namespace todoke::orders {

// What the ledger says of the row's key, as it was read with the claim.
enum class LedgerState {
  missing,      // created when the row is settled
  open,         // accepted, not settled
  succeeded,    // final
  failed,       // settled; a row that is pending all the same has been requeued
  conflicting,  // another content under the same key
};

// Whether the row follows the ledger, unsent. `lapsed`: it was taken over from a worker whose lease had
// lapsed.
bool has_last_word(LedgerState ledger, bool lapsed);

// The ledger's status beside a row of this one; none: the ledger stays as it is.
std::optional<std::string_view> ledger_status_of(queue::RowStatus status);

}  // namespace todoke::orders
