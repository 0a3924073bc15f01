#include "app/retention_periods.hpp"

#include "app/command.hpp"
#include "app/effective_config.hpp"
#include "relay/retention.hpp"

namespace todoke::app {

Task<relay::RetentionPeriods> periods_in_force(pg::Connection& connection, const Config& config) {
  const auto in_force = co_await with_database_layer(connection, config);
  co_return relay::retention_periods_from(in_force);
}

Task<void> refuse_policy(pg::Connection& connection, const Config& config, std::string topic,
                         std::string policy) {
  const auto periods = co_await periods_in_force(connection, config);
  const auto before =
      co_await relay::period_problems(connection, periods, std::nullopt, std::nullopt, answer_deadline());
  const auto after = co_await relay::period_problems(connection, periods, std::move(topic), std::move(policy),
                                                     answer_deadline());
  if (const auto more = relay::new_problems(before, after); !more.empty())
    throw UserError(relay::period_text(more));
}

}  // namespace todoke::app
