#include "orders/worker/ledger.hpp"

namespace todoke::orders {

bool has_last_word(LedgerState ledger, bool lapsed) {
  switch (ledger) {
    case LedgerState::succeeded:
    case LedgerState::conflicting:
      return true;
    case LedgerState::failed:
      return lapsed;
    case LedgerState::missing:
    case LedgerState::open:
      return false;
  }
  return false;
}

std::optional<std::string_view> ledger_status_of(queue::RowStatus status) {
  switch (status) {
    case queue::RowStatus::succeeded:
      return "succeeded";
    case queue::RowStatus::aborted:
      return "failed";
    case queue::RowStatus::failed:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace todoke::orders
