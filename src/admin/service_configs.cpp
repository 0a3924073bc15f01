#include "admin/service_configs.hpp"

#include <algorithm>
#include <utility>

#include "admin/service_configs_sql.hpp"
#include "base/json_writer.hpp"

namespace todoke::admin {
namespace {

// Ten times the keys that there are: further rows were not written by this program.
constexpr std::int32_t kLinesMax = 2'000;

}  // namespace

ConfigSeeds service_config_seeds(const Config& config) {
  ConfigSeeds seeds;
  for (const auto& [name, spec] : config.schema().keys()) {
    if (!spec->live) continue;
    auto& seed = seeds[std::string(service_of(name))];
    const auto& setting = config.setting(name);
    if (setting.layer == Layer::file) seed.emplace(name, format_value(*spec, setting.value));
  }
  return seeds;
}

StoredValue stored_value(const std::vector<ConfigRow>& rows, const std::string& key, bool anywhere) {
  StoredValue own{std::string(service_of(key)), std::nullopt, 0};
  std::optional<StoredValue> other;
  for (const auto& row : rows) {
    const auto found = row.values.find(key);
    const auto value = found == row.values.end() ? std::nullopt : std::optional(found->second);
    if (row.service == own.service) {
      own = {row.service, value, row.version};
    } else if (value) {
      other = {row.service, value, row.version};
    }
  }
  return anywhere && !own.value && other ? *other : own;
}

ConfigTrial check_config_change(const Config& config, std::vector<ConfigRow> rows, const std::string& key,
                                const std::optional<std::string>& value) {
  LiveConfig before(config);
  before.set_rows(rows);
  const auto service = value ? std::string(service_of(key)) : stored_value(rows, key, true).service;
  const auto own =
      std::find_if(rows.begin(), rows.end(), [&](const ConfigRow& row) { return row.service == service; });
  auto& row = own == rows.end() ? rows.emplace_back(ConfigRow{service, 0, {}}) : *own;
  row.values.erase(key);
  if (value) row.values.emplace(key, *value);
  LiveConfig after(config);
  after.set_rows(rows);
  if (after.problems().size() > before.problems().size()) {
    // The rule alone, where nothing else is wrong: the row that it names has not been written.
    auto trial = config;
    for (const auto& each : rows)
      for (const auto& [name, text] : each.values) (void)trial.set_database(name, text, "database");
    const auto checked = trial.check();
    throw UserError(before.problems().empty() && !checked ? checked.error().message
                                                          : after.problems().back());
  }
  return {before.config(), after.config(), after.problems()};
}

Task<std::vector<std::string>> seed_service_configs(pg::Connection& connection, const Config& config,
                                                    Deadline deadline) {
  std::vector<std::string> services;
  std::vector<std::string> objects;
  for (const auto& [service, values] : service_config_seeds(config)) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [key, value] : values) json.member(key, value);
    json.end_object();
    services.push_back(service);
    objects.push_back(std::move(json).text());
  }
  pg::Batch batch;
  batch.add(sql::kActAs, {"seed"});
  batch.add(sql::kSeedServiceConfigs, pg::Params(services, objects));
  const auto results = co_await connection.run(std::move(batch), deadline);
  std::vector<std::string> seeded;
  for (const auto& row : results.back()) seeded.push_back(row.get<std::string>(0));
  co_return seeded;
}

Task<std::vector<ConfigRow>> read_service_configs(pg::Connection& connection, Deadline deadline) {
  const auto lines = co_await connection.query(sql::kReadServiceConfigs, {kLinesMax}, deadline);
  std::vector<ConfigRow> rows;
  for (const auto& line : lines) {
    const auto service = line.get<std::string>("service");
    if (rows.empty() || rows.back().service != service)
      rows.push_back({service, line.get<std::int64_t>("version"), {}});
    const auto key = line.get<std::optional<std::string>>("key");
    const auto value = line.get<std::optional<std::string>>("value");
    if (key && value) rows.back().values.emplace(*key, *value);
  }
  co_return rows;
}

Task<std::optional<std::int64_t>> change_service_config(pg::Connection& connection, ConfigChange change,
                                                        Deadline deadline) {
  pg::Batch batch;
  batch.add(sql::kActAs, {change.actor});
  batch.add(sql::kChangeServiceConfig,
            pg::Params(change.service, change.key, change.value, change.expected_version));
  const auto results = co_await connection.run(std::move(batch), deadline);
  if (results.back().empty()) co_return std::nullopt;
  co_return results.back().one().get<std::int64_t>(0);
}

Task<std::vector<ConfigHistoryLine>> service_config_history(pg::Connection& connection,
                                                            std::optional<std::string> key, std::int32_t most,
                                                            Deadline deadline) {
  pg::Params params(key, most);
  const auto rows = co_await connection.query(sql::kServiceConfigHistory, std::move(params), deadline);
  std::vector<ConfigHistoryLine> lines;
  for (const auto& row : rows) {
    lines.push_back({row.get<std::string>("service"), row.get<std::int64_t>("version"),
                     row.get<std::string>("key"), row.get<std::optional<std::string>>("before"),
                     row.get<std::optional<std::string>>("after"), row.get<std::string>("changed_at"),
                     row.get<std::string>("changed_by")});
  }
  co_return lines;
}

}  // namespace todoke::admin
