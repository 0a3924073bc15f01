// What takes room in the database, how fast it grows, and how long the disk will do.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/stats_sql.hpp"
#include "base/json_writer.hpp"

namespace todoke::app {
namespace {

constexpr std::int32_t kPartitionsShownMax = 1'000;
constexpr std::int32_t kTopicsShownMax = 50;
constexpr std::size_t kKindsShownMax = 50;
constexpr std::size_t kTablesShownMax = 20;
// Of 8 KiB: a quarter of a second from the cache, some seconds from a disk.
constexpr std::int64_t kSampleBlocks = 20'000;
constexpr std::int32_t kGrowthDays = 7;
constexpr double kSecondsPerDay = 86'400;
// A node that is younger says nothing about a day.
constexpr double kGrowthDaysLeast = 1.0 / 24;

struct Sized {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t rows = 0;
  std::string holds;  // of a partition: which rows
};

struct Share {
  std::string name;   // a topic's id, or a kind
  std::string known;  // the name by which a topic was enabled
  double events = 0;
  double bytes = 0;
};

struct Stats {
  std::int64_t database_bytes = 0;
  std::optional<std::int64_t> free_bytes;  // of the disk; known of the embedded database only
  std::vector<Sized> tables;
  std::vector<Sized> partitions;
  double sample_percent = 100;
  double events = 0;
  std::vector<Share> topics;
  std::vector<Share> kinds;
  double growth_days = 0;  // looked at
  double events_per_day = 0;
  double bytes_per_day = 0;

  [[nodiscard]] std::optional<double> days_left() const {
    if (!free_bytes || bytes_per_day <= 0) return std::nullopt;
    return static_cast<double>(*free_bytes) / bytes_per_day;
  }
};

std::vector<Sized> read_sizes(const pg::Result& rows, bool partitions) {
  std::vector<Sized> sizes;
  for (const auto& row : rows) {
    Sized sized{
        row.get<std::string>("name"), row.get<std::int64_t>("bytes"), row.get<std::int64_t>("rows"), {}};
    if (partitions) sized.holds = row.get<std::string>("holds");
    sizes.push_back(std::move(sized));
  }
  return sizes;
}

// What the sample says, for the whole: `event_bytes` is what all events take.
void read_kinds(const pg::Result& rows, std::int64_t event_bytes, Stats& stats) {
  const auto scale = 100 / stats.sample_percent;
  double weight = 0;
  double recent = 0;
  std::int64_t age = 0;
  for (const auto& row : rows) {
    const auto events = static_cast<double>(row.get<std::int64_t>("events")) * scale;
    stats.events += events;
    weight += static_cast<double>(row.get<std::int64_t>("weight"));
    recent += static_cast<double>(row.get<std::int64_t>("recent")) * scale;
    age = std::max(age, row.get<std::int64_t>("age"));
    stats.kinds.push_back({std::to_string(row.get<std::int32_t>("kind")),
                           {},
                           events,
                           static_cast<double>(row.get<std::int64_t>("weight"))});
  }
  const auto bytes_per_weight = weight > 0 ? static_cast<double>(event_bytes) / weight : 0;
  for (auto& kind : stats.kinds) kind.bytes *= bytes_per_weight;
  for (auto& topic : stats.topics) topic.bytes *= bytes_per_weight;
  stats.growth_days = std::clamp(static_cast<double>(age) / kSecondsPerDay, kGrowthDaysLeast,
                                 static_cast<double>(kGrowthDays));
  stats.events_per_day = recent / stats.growth_days;
  if (stats.events > 0) {
    stats.bytes_per_day = stats.events_per_day * static_cast<double>(event_bytes) / stats.events;
  }
}

void read_topics(const pg::Result& rows, Stats& stats) {
  const auto scale = 100 / stats.sample_percent;
  for (const auto& row : rows) {
    stats.topics.push_back({row.get<std::string>("topic_id"),
                            row.get<std::optional<std::string>>("name").value_or(""),
                            static_cast<double>(row.get<std::int64_t>("events")) * scale,
                            static_cast<double>(row.get<std::int64_t>("weight"))});
  }
}

Task<void> collect(pg::Connection& connection, Stats& stats) {
  const auto deadline = answer_deadline();
  const auto tables = co_await connection.query(sql::kTableSizes, {}, deadline);
  stats.tables = read_sizes(tables, false);
  const auto partitions = co_await connection.query(sql::kPartitionSizes, {kPartitionsShownMax}, deadline);
  stats.partitions = read_sizes(partitions, true);
  const auto sizes = co_await connection.query(sql::kDatabaseSize, {}, deadline);
  stats.database_bytes = sizes.one().get<std::int64_t>("bytes");
  const auto blocks = sizes.one().get<std::int64_t>("blocks");
  if (blocks > kSampleBlocks)
    stats.sample_percent = 100 * static_cast<double>(kSampleBlocks) / static_cast<double>(blocks);
  pg::Params of_topics(stats.sample_percent, kTopicsShownMax);
  const auto topics = co_await connection.query(sql::kSampledTopics, std::move(of_topics), deadline);
  read_topics(topics, stats);
  pg::Params of_kinds(stats.sample_percent, kGrowthDays);
  const auto kinds = co_await connection.query(sql::kSampledKinds, std::move(of_kinds), deadline);
  read_kinds(kinds, sizes.one().get<std::int64_t>("event_bytes"), stats);
}

std::string size_text(double bytes) {
  constexpr double kStep = 1'024;
  for (const auto* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (bytes < kStep) return fmt::format("{:.{}f} {}", bytes, *unit == 'B' ? 0 : 1, unit);
    bytes /= kStep;
  }
  return fmt::format("{:.1f} TiB", bytes);
}

std::string sized_lines(const std::vector<Sized>& all, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    text += fmt::format("  {:>11} {:>12}  {}{}\n", size_text(static_cast<double>(all[i].bytes)), all[i].rows,
                        all[i].name, all[i].holds.empty() ? "" : "  " + all[i].holds);
  }
  return text;
}

std::string share_lines(const std::vector<Share>& all, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    text += fmt::format("  {:>11} {:>12.0f}  {}{}\n", size_text(all[i].bytes), all[i].events, all[i].name,
                        all[i].known.empty() ? "" : "  " + all[i].known);
  }
  return text;
}

std::string stats_text(const Stats& stats) {
  auto text = fmt::format("database    {}\n", size_text(static_cast<double>(stats.database_bytes)));
  const auto exact = stats.sample_percent >= 100;
  text += fmt::format("events      {}{:.0f} stored\n", exact ? "" : "about ", stats.events);
  text += fmt::format("growth      {:.0f} events a day, {} a day (the last {:.1f} days)\n",
                      stats.events_per_day, size_text(stats.bytes_per_day), stats.growth_days);
  if (stats.free_bytes) {
    const auto days = stats.days_left();
    text += fmt::format("disk        {} free{}\n", size_text(static_cast<double>(*stats.free_bytes)),
                        days ? fmt::format(", {:.0f} days left if nothing is purged", *days) : "");
  }
  text += "\ntables             size         rows\n" + sized_lines(stats.tables, kTablesShownMax);
  text += "\npartitions         size         rows\n" + sized_lines(stats.partitions, stats.partitions.size());
  text += "\ntopics             size       events\n" + share_lines(stats.topics, stats.topics.size());
  text += "\nkinds              size       events\n" + share_lines(stats.kinds, kKindsShownMax);
  if (!exact) {
    text += fmt::format("\n(topics, kinds and growth: estimated from {:.2f} % of the blocks)\n",
                        stats.sample_percent);
  }
  return text;
}

void write_sizes(JsonWriter& json, std::string_view key, const std::vector<Sized>& all) {
  json.key(key).begin_array();
  for (const auto& sized : all) {
    json.begin_object().member("name", sized.name).member("bytes", sized.bytes).member("rows", sized.rows);
    if (!sized.holds.empty()) json.member("holds", sized.holds);
    json.end_object();
  }
  json.end_array();
}

void write_shares(JsonWriter& json, std::string_view key, const std::vector<Share>& all) {
  json.key(key).begin_array();
  for (const auto& share : all) {
    json.begin_object().member("name", share.name);
    if (!share.known.empty()) json.member("known_as", share.known);
    json.member("events", std::llround(share.events)).member("bytes", std::llround(share.bytes)).end_object();
  }
  json.end_array();
}

std::string stats_json(const Stats& stats) {
  JsonWriter json;
  json.begin_object().member("database_bytes", stats.database_bytes);
  json.member("events", std::llround(stats.events)).member("sample_percent", stats.sample_percent);
  json.member("growth_days", stats.growth_days);
  json.member("events_per_day", stats.events_per_day).member("bytes_per_day", stats.bytes_per_day);
  if (stats.free_bytes) json.member("disk_free_bytes", *stats.free_bytes);
  if (const auto days = stats.days_left()) json.member("days_left", *days);
  write_sizes(json, "tables", stats.tables);
  write_sizes(json, "partitions", stats.partitions);
  write_shares(json, "topics", stats.topics);
  write_shares(json, "kinds", stats.kinds);
  json.end_object();
  return std::move(json).text() + "\n";
}

int run_stats(const Arguments& arguments) {
  const auto config = load_config(arguments);
  Stats stats;
  with_running_database(config, [&](pg::Connection& connection) { return collect(connection, stats); });
  if (database_in_use(config).embedded) {
    std::error_code error;
    const auto space = std::filesystem::space(data_folder(config), error);
    if (!error) stats.free_bytes = static_cast<std::int64_t>(space.available);
  }
  print(arguments.has("json") ? stats_json(stats) : stats_text(stats));
  return 0;
}

}  // namespace

Command stats_command() {
  return {
      .name = "stats",
      .summary = "show what takes room, by table, topic and kind, and how fast it grows",
      .synopsis = "[--json]",
      .details =
          "Sizes of tables and partitions are exact, rows as the database last counted them. Topics, kinds "
          "and the growth of "
          "the last seven days come from a sample of 20,000 blocks (160 MB) where there are more, and count "
          "every stored event, "
          "in effect or not; an event of several topics counts in each. With the embedded database it says "
          "how many days the "
          "disk will do.",
      .options = {{"json", "", "everything as one JSON object"}},
      .run = run_stats,
  };
}

}  // namespace todoke::app
