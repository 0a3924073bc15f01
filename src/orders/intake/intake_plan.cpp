#include "orders/intake/intake_plan.hpp"

#include "base/hash_table.hpp"

namespace todoke::orders {

std::vector<std::size_t> first_of_key(std::span<const Offer* const> offers) {
  HashMap<std::string_view, std::size_t> seen;
  std::vector<std::size_t> first(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i)
    first[i] = seen.try_emplace(offers[i]->key, i).first->second;
  return first;
}

IntakeOutcome judge(const Offer& offer, bool is_first, const Offer& first, const KeyFate& fate) {
  OrderState state;
  if (fate.taken_now) {
    state.idempotency_key = first.key;
    state.request_digest = first.digest;
    if (is_first) return {IntakeVerdict::accepted, std::move(state)};
  } else if (fate.stored) {
    state = *fate.stored;
  } else {
    return {fate.maybe_ours ? IntakeVerdict::unknown : IntakeVerdict::unavailable, {}};
  }
  if (state.request_digest != offer.digest) return {IntakeVerdict::conflict, std::move(state)};
  if (is_first && fate.maybe_ours) return {IntakeVerdict::accepted, std::move(state)};
  return {IntakeVerdict::replayed, std::move(state)};
}

}  // namespace todoke::orders
