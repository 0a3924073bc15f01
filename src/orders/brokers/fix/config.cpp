#include "orders/brokers/fix/config.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "orders/brokers/fix/id.hpp"

namespace todoke::orders {
namespace {

static_assert(keys::kFixClOrdIdMax.spec.min == kClOrdIdLengthMin);
static_assert(keys::kFixClOrdIdMax.spec.max == kClOrdIdLengthMax);

// Whether a field of a message can hold the text.
bool is_field_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

Expected<FixOptions> FixOptions::from(const Config& config) {
  for (const auto* key : {&keys::kFixHost, &keys::kFixSender, &keys::kFixTarget, &keys::kFixUsername,
                          &keys::kFixPassword, &keys::kFixAccount}) {
    if (!is_field_text(config.get(*key))) {
      return refuse(fmt::format("{} has a character that is not printable ASCII", key->spec.name));
    }
  }
  for (const auto* key : {&keys::kFixHost, &keys::kFixSender, &keys::kFixTarget}) {
    if (config.get(*key).empty()) {
      return refuse(fmt::format("broker.adapter is fix, and {} is not set", key->spec.name));
    }
  }
  if (config.get(keys::kFixPort) == 0) return refuse("broker.adapter is fix, and orders.fix.port is not set");
  if (!config.get(keys::kFixPassword).empty() && config.get(keys::kFixUsername).empty()) {
    return refuse("orders.fix.password is set without orders.fix.username");
  }
  if (config.get(keys::kFixHeartbeat).count() % 1'000 != 0) {
    return refuse("orders.fix.heartbeat_sec must be a whole number of seconds");
  }
  FixOptions options;
  options.session.host = config.get(keys::kFixHost);
  options.session.port = static_cast<int>(config.get(keys::kFixPort));
  options.session.sender_comp_id = config.get(keys::kFixSender);
  options.session.target_comp_id = config.get(keys::kFixTarget);
  options.session.username = config.get(keys::kFixUsername);
  options.session.password = config.get(keys::kFixPassword);
  options.session.heartbeat_sec = static_cast<int>(config.get(keys::kFixHeartbeat).count() / 1'000);
  options.session.reset_on_logon = config.get(keys::kFixReset);
  options.name = fmt::format("{}->{}", options.session.sender_comp_id, options.session.target_comp_id);
  options.account = config.get(keys::kFixAccount);
  options.cl_ord_id_max = static_cast<std::size_t>(config.get(keys::kFixClOrdIdMax));
  options.lease = config.get(keys::kFixLease);
  options.questions_per_sec = static_cast<int>(config.get(keys::kFixQuestionsPerSec));
  return options;
}

std::span<const KeySpec* const> fix_config_keys() {
  static constexpr std::array kKeys{
      &keys::kFixHost.spec,       &keys::kFixPort.spec,      &keys::kFixSender.spec,
      &keys::kFixTarget.spec,     &keys::kFixUsername.spec,  &keys::kFixPassword.spec,
      &keys::kFixAccount.spec,    &keys::kFixHeartbeat.spec, &keys::kFixReset.spec,
      &keys::kFixClOrdIdMax.spec, &keys::kFixLease.spec,     &keys::kFixQuestionsPerSec.spec,
  };
  return kKeys;
}

}  // namespace todoke::orders
