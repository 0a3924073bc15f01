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
#include "app/effective_config.hpp"
#include "app/node_options.hpp"
#include "app/stats_sql.hpp"
#include "base/json_writer.hpp"
#include "relay/capacity.hpp"

namespace todoke::app {
namespace {

constexpr std::int32_t kPartitionsShownMax = 1'000;
constexpr std::int32_t kTopicsShownMax = 50;
constexpr std::size_t kKindsShownMax = 50;
constexpr std::size_t kTablesShownMax = 20;
// Of 8 KiB: a quarter of a second from the cache, some seconds from a disk.
constexpr std::int64_t kSampleBlocks = 20'000;
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

// Something that may become full, and how long it will do if nothing is purged.
struct Bound {
  std::string_view name;
  std::optional<double> days_left;  // none: it does not grow
};

struct Stats {
  relay::DatabaseUse use;
  relay::CapacityLimits limits;
  std::int64_t event_bytes = 0;            // of all that takes room because of events
  std::optional<std::int64_t> free_bytes;  // of the disk; known of the embedded database only
  std::int64_t free_bytes_min = 0;         // that must stay
  std::vector<Sized> tables;
  std::vector<Sized> partitions;
  double sample_percent = 100;  // of the blocks, for the kinds
  std::vector<Share> topics;
  std::vector<Share> kinds;
  double growth_days = 0;  // looked at
  double events_per_day = 0;
  double bytes_per_day = 0;

  // As capacity.max_bytes counts them.
  [[nodiscard]] std::int64_t bytes_used() const {
    return std::min(use.size, relay::bytes_needed(use, limits.has_search));
  }
  // The key of the limit, or `disk`; what has no limit is not among them.
  [[nodiscard]] std::vector<Bound> bounds() const {
    std::vector<Bound> all;
    if (limits.bytes_max > 0)
      all.push_back({"capacity.max_bytes", days(limits.bytes_max - bytes_used(), bytes_per_day)});
    if (limits.events_max > 0)
      all.push_back({"capacity.max_events", days(limits.events_max - use.events, events_per_day)});
    if (free_bytes) all.push_back({"disk", days(*free_bytes - free_bytes_min, bytes_per_day)});
    return all;
  }
  // The one that is full first.
  [[nodiscard]] std::optional<Bound> first_full() const {
    std::optional<Bound> first;
    for (const auto& bound : bounds()) {
      if (bound.days_left && (!first || *bound.days_left < *first->days_left)) first = bound;
    }
    return first;
  }

 private:
  static std::optional<double> days(std::int64_t room, double a_day) {
    if (a_day <= 0) return std::nullopt;
    return static_cast<double>(std::max<std::int64_t>(0, room)) / a_day;
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

// The share of what all events take. Counters leave out the log and the search index.
double share_of(std::int64_t bytes, std::int64_t of_all, std::int64_t event_bytes) {
  if (of_all <= 0) return 0;
  return static_cast<double>(bytes) / static_cast<double>(of_all) * static_cast<double>(event_bytes);
}

void read_topics(const pg::Result& rows, Stats& stats) {
  for (const auto& row : rows) {
    stats.topics.push_back({row.get<std::string>("topic_id"),
                            row.get<std::optional<std::string>>("name").value_or(""),
                            static_cast<double>(row.get<std::int64_t>("events")),
                            share_of(row.get<std::int64_t>("bytes"), stats.use.bytes, stats.event_bytes)});
  }
}

// Of events that are kept without weeks: stored lately, and all, both in the sample.
struct KeptSample {
  double lately = 0;
  double all = 0;
};

KeptSample read_kinds(const pg::Result& rows, Stats& stats) {
  std::int64_t events = 0;
  std::int64_t bytes = 0;
  KeptSample kept;
  for (const auto& row : rows) {
    events += row.get<std::int64_t>("events");
    bytes += row.get<std::int64_t>("bytes");
    kept.all += static_cast<double>(row.get<std::int64_t>("kept"));
    kept.lately += static_cast<double>(row.get<std::int64_t>("kept_since"));
  }
  const auto scale = events == 0 ? 0 : static_cast<double>(stats.use.events) / static_cast<double>(events);
  for (const auto& row : rows) {
    stats.kinds.push_back({std::to_string(row.get<std::int32_t>("kind")),
                           {},
                           static_cast<double>(row.get<std::int64_t>("events")) * scale,
                           share_of(row.get<std::int64_t>("bytes"), bytes, stats.event_bytes)});
  }
  return kept;
}

void read_growth(const pg::Row& row, const KeptSample& kept, Stats& stats) {
  const auto part = kept.all > 0 ? kept.lately / kept.all : 0;
  const auto of = [&](const char* weekly, const char* unending) {
    return static_cast<double>(row.get<std::int64_t>(weekly)) +
           part * static_cast<double>(row.get<std::int64_t>(unending));
  };
  stats.growth_days = std::max(row.get<double>("seconds") / kSecondsPerDay, kGrowthDaysLeast);
  stats.events_per_day = of("events", "kept_events") / stats.growth_days;
  const auto bytes = static_cast<std::int64_t>(of("bytes", "kept_bytes"));
  stats.bytes_per_day =
      static_cast<double>(relay::bytes_needed({0, 0, bytes}, stats.limits.has_search)) / stats.growth_days;
}

Task<void> collect(pg::Connection& connection, const Config& base, Stats& stats) {
  const auto deadline = answer_deadline();
  const auto config = co_await with_database_layer(connection, base);
  stats.limits = relay::capacity_from(config);
  stats.free_bytes_min = static_cast<std::int64_t>(free_bytes_min(config));
  stats.use = co_await relay::database_use(connection, deadline);
  const auto tables = co_await connection.query(sql::kTableSizes, {}, deadline);
  stats.tables = read_sizes(tables, false);
  const auto partitions = co_await connection.query(sql::kPartitionSizes, {kPartitionsShownMax}, deadline);
  stats.partitions = read_sizes(partitions, true);
  const auto sizes = co_await connection.query(sql::kEventSizes, {}, deadline);
  stats.event_bytes = sizes.one().get<std::int64_t>("event_bytes");
  const auto topics = co_await connection.query(sql::kLargestTopics, {kTopicsShownMax}, deadline);
  read_topics(topics, stats);
  const auto blocks = sizes.one().get<std::int64_t>("blocks");
  if (blocks > kSampleBlocks)
    stats.sample_percent = 100 * static_cast<double>(kSampleBlocks) / static_cast<double>(blocks);
  const auto growth = co_await connection.query(sql::kGrowth, {}, deadline);
  pg::Params of_kinds(stats.sample_percent, growth.one().get<SystemTime>("since"));
  const auto kinds = co_await connection.query(sql::kSampledKinds, std::move(of_kinds), deadline);
  read_growth(growth.one(), read_kinds(kinds, stats), stats);
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

std::string days_text(const std::optional<double>& days) {
  return days ? fmt::format(", {:.0f} days left", *days) : std::string();
}

std::string bounds_text(const Stats& stats) {
  std::string text;
  const auto size = [](std::int64_t bytes) { return size_text(static_cast<double>(bytes)); };
  for (const auto& bound : stats.bounds()) {
    const auto days = days_text(bound.days_left);
    if (bound.name == "disk") {
      text += fmt::format("disk        {} free{}\n", size(*stats.free_bytes), days);
    } else if (bound.name == "capacity.max_bytes") {
      text += fmt::format("capacity    {} of {} ({}){}\n", size(stats.bytes_used()),
                          size(stats.limits.bytes_max), bound.name, days);
    } else {
      text += fmt::format("capacity    {} of {} events ({}){}\n", stats.use.events, stats.limits.events_max,
                          bound.name, days);
    }
  }
  if (const auto first = stats.first_full())
    text += fmt::format("days left   {:.0f} if nothing is purged ({})\n", *first->days_left, first->name);
  return text;
}

std::string stats_text(const Stats& stats) {
  auto text = fmt::format("database    {}\n", size_text(static_cast<double>(stats.use.size)));
  text += fmt::format("events      {} stored\n", stats.use.events);
  text += fmt::format("growth      {:.0f} events a day, {} a day (the last {:.1f} days)\n",
                      stats.events_per_day, size_text(stats.bytes_per_day), stats.growth_days);
  text += bounds_text(stats);
  text += "\ntables             size         rows\n" + sized_lines(stats.tables, kTablesShownMax);
  text += "\npartitions         size         rows\n" + sized_lines(stats.partitions, stats.partitions.size());
  text += "\ntopics             size       events\n" + share_lines(stats.topics, stats.topics.size());
  text += "\nkinds              size       events\n" + share_lines(stats.kinds, kKindsShownMax);
  if (stats.sample_percent < 100)
    text += fmt::format("\n(kinds: estimated from {:.2f} % of the blocks)\n", stats.sample_percent);
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

void write_bounds(JsonWriter& json, const Stats& stats) {
  json.member("capacity_bytes", stats.bytes_used()).member("capacity_bytes_max", stats.limits.bytes_max);
  json.member("capacity_events_max", stats.limits.events_max);
  if (stats.free_bytes) json.member("disk_free_bytes", *stats.free_bytes);
  json.key("days_left_of").begin_object();
  for (const auto& bound : stats.bounds()) {
    if (bound.days_left) json.member(bound.name, *bound.days_left);
  }
  json.end_object();
  if (const auto first = stats.first_full()) json.member("days_left", *first->days_left);
}

std::string stats_json(const Stats& stats) {
  JsonWriter json;
  json.begin_object().member("database_bytes", stats.use.size);
  json.member("events", stats.use.events).member("sample_percent", stats.sample_percent);
  json.member("growth_days", stats.growth_days);
  json.member("events_per_day", stats.events_per_day).member("bytes_per_day", stats.bytes_per_day);
  write_bounds(json, stats);
  write_sizes(json, "tables", stats.tables);
  write_sizes(json, "partitions", stats.partitions);
  write_shares(json, "topics", stats.topics);
  write_shares(json, "kinds", stats.kinds);
  json.end_object();
  return std::move(json).text() + "\n";
}

int run_stats(const Arguments& arguments) {
  const auto config = command_config(arguments);
  Stats stats;
  with_running_database(config,
                        [&](pg::Connection& connection) { return collect(connection, config, stats); });
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
          "Sizes of tables and partitions are exact, rows as the database last counted them. Events, topics "
          "and the growth since the beginning of last week come from the node's counters, the kinds from a "
          "sample of 20,000 blocks (160 MB) where there are more. All count every stored event, in effect or "
          "not; an event of several topics counts in each. Days left: until capacity.max_bytes, "
          "capacity.max_events or the disk of the embedded database is full.",
      .options = {{"json", "", "everything as one JSON object"}},
      .run = run_stats,
  };
}

}  // namespace todoke::app
