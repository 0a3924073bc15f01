#include "app/retention_periods.hpp"

#include "app/command.hpp"
#include "app/data_folder.hpp"
#include "app/instance_file.hpp"
#include "app/service_configs.hpp"
#include "base/live_config.hpp"
#include "relay/retention.hpp"

namespace todoke::app {

Config config_in_force(const Config& own, const std::vector<std::pair<std::string, std::string>>& keys) {
  const auto nodes = running_instances(data_folder(own));
  if (nodes.empty()) return own;
  auto config = config_of_next_start(nodes.front(), own);
  for (const auto& [key, value] : keys) config.set_flag(key, value);
  return config;
}

Task<relay::RetentionPeriods> periods_in_force(pg::Connection& connection, const Config& config) {
  LiveConfig live(config);
  live.set_rows(co_await read_service_configs(connection, answer_deadline()));
  co_return relay::retention_periods_from(live.config());
}

Task<void> refuse_policy(pg::Connection& connection, const Config& config, std::string topic,
                         std::string policy) {
  const auto periods = co_await periods_in_force(connection, config);
  const auto before =
      co_await relay::period_problem(connection, periods, std::nullopt, std::nullopt, answer_deadline());
  const auto after = co_await relay::period_problem(connection, periods, std::move(topic), std::move(policy),
                                                    answer_deadline());
  // What was wrong before stays changeable: that is how an operator mends it.
  if (after && after != before) throw UserError(*after);
}

}  // namespace todoke::app
