#include "orders/intake/config.hpp"

#include <fmt/format.h>

#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

UserError refused(const Config& config, std::string_view key, const std::string& why) {
  return UserError(fmt::format("{}: {}: {}", config.setting(key).source, key, why));
}

AmountTable table_from(const Config& config, const Key<std::vector<std::string>>& key, bool allow_any) {
  auto table = AmountTable::parse(config.get(key), allow_any);
  if (table) return std::move(*table);
  throw refused(config, key.spec.name, table.error().message);
}

}  // namespace

std::span<const KeySpec* const> api_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kInstruments.spec,    &keys::kLotSteps.spec,      &keys::kTokensFile.spec,
      &keys::kAllowAnonymous.spec, &keys::kRatePerMinute.spec, &keys::kBodyBytesMax.spec,
      &keys::kAcceptTimeout.spec,  &keys::kWaitersMax.spec,    &keys::kQtyMax.spec,
      &keys::kNotionalMax.spec,    &keys::kPerSecond.spec,     &keys::kInDoubtMax.spec};
  return kKeys;
}

Policy policy_from(const Config& config) {
  Policy policy;
  const auto& instruments = config.get(keys::kInstruments);
  for (const auto& instrument : instruments) {
    if (!is_instrument(instrument)) {
      throw refused(config, keys::kInstruments.spec.name,
                    fmt::format("'{}' {}", instrument, kInstrumentRule));
    }
  }
  policy.instruments.insert(instruments.begin(), instruments.end());
  policy.lot_steps = table_from(config, keys::kLotSteps, false);
  policy.qty_max = table_from(config, keys::kQtyMax, true);
  policy.notional_max = table_from(config, keys::kNotionalMax, true);
  return policy;
}

}  // namespace todoke::orders
