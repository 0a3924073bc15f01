#include "pg/retry.hpp"

#include "pg/error.hpp"

namespace todoke::pg {

bool is_retryable(const std::exception_ptr& error, const RetryPolicy& policy) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& refused) {
    return refused.is_serialization_failure() || refused.is_deadlock() || refused.is_lock_timeout();
  } catch (const ConnectionLost&) {
    return true;
  } catch (const CommitOutcomeUnknown&) {
    return policy.retry_unknown_commit;
  } catch (...) {
    return false;
  }
}

}  // namespace todoke::pg
