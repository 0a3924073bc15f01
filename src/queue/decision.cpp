#include "queue/decision.hpp"

#include <algorithm>

namespace todoke::queue {

std::string_view to_string(RowStatus status) {
  switch (status) {
    case RowStatus::pending:
      return "pending";
    case RowStatus::succeeded:
      return "succeeded";
    case RowStatus::failed:
      return "failed";
    case RowStatus::aborted:
      return "aborted";
  }
  return "";
}

Step next_step(const RowState& row, int attempts_max, bool can_look_up) {
  const bool looks_up = row.in_doubt && can_look_up;
  if (row.attempts >= attempts_max) return looks_up ? Step::look_up_then_give_up : Step::give_up;
  return looks_up ? Step::look_up_then_try : Step::try_it;
}

Verdict judge(const RowState& row, const Outcome& outcome, bool counts, const Policy& policy, double jitter) {
  const bool in_doubt = (row.in_doubt && !outcome.doubt_ended) || outcome.in_doubt;
  const bool adds_one = outcome.was_tried && (counts || outcome.counts_always);
  const int attempts =
      std::min(row.attempts + (adds_one ? 1 : 0), std::max(policy.attempts_max, row.attempts));
  switch (outcome.kind) {
    case Outcome::Kind::done:
      return {RowStatus::succeeded, row.attempts, false, std::nullopt};
    case Outcome::Kind::untouched:
      return {RowStatus::pending, row.attempts, row.in_doubt, std::nullopt};
    case Outcome::Kind::permanent:
      return {RowStatus::aborted, attempts, in_doubt, std::nullopt};
    case Outcome::Kind::transient:
      break;
  }
  if (adds_one && attempts >= policy.attempts_max) {
    return {RowStatus::aborted, attempts, in_doubt, std::nullopt};
  }
  const auto by_table = policy.retry.delay(std::max(attempts, 1), jitter);
  const auto delay = std::max(by_table, outcome.retry_after.value_or(by_table));
  return {RowStatus::failed, attempts, in_doubt, delay};
}

}  // namespace todoke::queue
