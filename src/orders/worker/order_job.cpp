#include "orders/worker/order_job.hpp"

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

std::int64_t sending_ms(const OrderJob& job) {
  return job.tried ? std::chrono::duration_cast<std::chrono::milliseconds>(job.tried->took).count() : 0;
}

}  // namespace todoke::orders
