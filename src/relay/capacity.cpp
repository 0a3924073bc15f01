#include "relay/capacity.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/hash_table.hpp"
#include "base/log.hpp"
#include "relay/capacity_sql.hpp"
#include "relay/config.hpp"
#include "relay/purge.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kLookEvery(5);
constexpr std::chrono::seconds kLookMax(30);
constexpr int kLooksWithoutLimit = 12;
// Of capacity, in thousandths: all of it; and where the node is full although somebody holds a purge up.
constexpr std::int64_t kShareFull = 1'000;
constexpr std::int64_t kShareWithoutPurge = 1'050;
// Of a round; the next one goes on. A topic loses at most so many events at each look, 400 in a second.
constexpr std::int32_t kTopicsOfRound = 100;
constexpr std::int64_t kTopicEventsOfRound = 2'000;
// Pages and steps of one look, a second or two of work; the next look goes on.
constexpr int kPagesOfTopic = 50;
constexpr int kStepsOfWeek = 100;
constexpr std::chrono::milliseconds kPause(20);
// Longer than a turn of retention (kStepsOfTurn).
constexpr std::chrono::seconds kPurgeLockWait(30);
// Topics whose place is remembered; with more all begin anew.
constexpr std::size_t kPlacesMax = 10'000;
constexpr std::chrono::minutes kPurgeMax(10);

constexpr std::int64_t kNeededTenths = 16;
constexpr std::int64_t kNeededTenthsWithSearch = 25;
constexpr int kMebibyteBits = 20;

std::string use_text(std::string_view what, std::int64_t used, std::int64_t limit) {
  if (limit == 0) return fmt::format("{} {}", used, what);
  return fmt::format("{} of {} {}", used, limit, what);
}

// Between two steps: ingest and reads have the database to themselves as long as a step takes, and more.
Task<void> pause_between_steps() {
  co_await sleep_for(kPause);
}

struct WeekToPurge {
  SystemTime at;
  std::int32_t keep_days;
  std::int32_t regular_days;
};

Task<void> purge_week_into(pg::Connection& connection, WeekToPurge asked, OldestWeek& week,
                           Deadline deadline) {
  const auto apart = co_await clock_difference(connection, asked.at, deadline);
  week.held = !clocks_agree(apart);  // retention tells
  if (week.held) co_return;
  week = co_await purge_oldest_week(connection, asked.at, asked.keep_days, asked.regular_days, kStepsOfWeek,
                                    pause_between_steps, deadline);
}

Task<WeekPurge> purge_week_of(pg::Pool& pool, WeekToPurge asked) {
  const auto deadline = Deadline::after(kPurgeMax);
  const auto lease = co_await pool.acquire(deadline);
  OldestWeek week;
  const bool was_free = co_await with_purge_lock(
      *lease, kPurgeLockWait,
      [&](pg::Connection& connection) { return purge_week_into(connection, asked, week, deadline); },
      deadline);
  if (!was_free || week.held) co_return WeekPurge::put_off;
  if (week.under_way) co_return WeekPurge::under_way;
  co_return week.dropped ? WeekPurge::dropped : WeekPurge::none_left;
}

struct TopicToPurge {
  std::string topic;
  SystemTime at;
  std::int64_t events;
};

// What lost its effect first, all of it; then the oldest.
Task<void> purge_pages(pg::Connection& connection, const TopicToPurge& asked, TopicPlace& place,
                       std::int64_t& gone, Deadline deadline) {
  bool has_lost = true;
  for (int pages = 0; pages < kPagesOfTopic && gone < asked.events; ++pages) {
    const auto left = asked.events - gone;
    TopicPage page;
    if (has_lost) {
      page = co_await purge_lost_of_topic(connection, asked.topic, place, left, deadline);
    } else {
      page = co_await purge_oldest_of_topic(connection, asked.topic, asked.at, place, left, deadline);
    }
    gone += page.purged.events;
    if (page.is_last && !has_lost) co_return;
    if (page.is_last) has_lost = false;
    co_await pause_between_steps();
  }
}

using TopicPlaces = HashMap<std::string, TopicPlace>;

Task<std::int64_t> purge_from_topic(pg::Pool& pool, std::shared_ptr<TopicPlaces> places, TopicToPurge asked) {
  const auto deadline = Deadline::after(kPurgeMax);
  const auto lease = co_await pool.acquire(deadline);
  std::int64_t gone = 0;
  if (places->size() >= kPlacesMax) places->clear();
  auto place = (*places)[asked.topic];
  co_await with_purge_lock(
      *lease, kPurgeLockWait,
      [&](pg::Connection& connection) { return purge_pages(connection, asked, place, gone, deadline); },
      deadline);
  (*places)[asked.topic] = place;
  co_return gone;
}

}  // namespace

CapacityLimits capacity_from(const Config& config) {
  return {config.get(keys::kCapacityBytes), config.get(keys::kCapacityEvents),
          static_cast<std::int32_t>(config.get(keys::kCapacityKeepDays)),
          static_cast<std::int32_t>(config.get(keys::kRegularDays)), search_is_on(config)};
}

Task<DatabaseUse> database_use(pg::Connection& connection, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kDatabaseUse, {}, deadline);
  const auto row = rows.one();
  DatabaseUse use;
  use.size = row.get<std::int64_t>("size");
  use.events = row.get<std::int64_t>("events");
  use.bytes = row.get<std::int64_t>("bytes");
  use.kept = row.get<std::int64_t>("kept");
  use.marks = row.get<std::int64_t>("marks");
  co_return use;
}

std::int64_t bytes_needed(const DatabaseUse& use, bool has_search) {
  return use.bytes / 10 * (has_search ? kNeededTenthsWithSearch : kNeededTenths) + use.marks;
}

std::int64_t bytes_that_stay(const DatabaseUse& use, bool has_search) {
  return use.kept / 10 * (has_search ? kNeededTenthsWithSearch : kNeededTenths) + use.marks;
}

std::int64_t share_in_use(const DatabaseUse& use, const CapacityLimits& limits) {
  return std::max(
      outbox::share_in_use(std::min(use.size, bytes_needed(use, limits.has_search)), limits.bytes_max),
      outbox::share_in_use(use.events, limits.events_max));
}

std::string capacity_text(const DatabaseUse& use, const CapacityLimits& limits, bool is_full) {
  if (!limits.any()) return {};
  const auto used = std::min(use.size, bytes_needed(use, limits.has_search));
  const auto percent = static_cast<double>(share_in_use(use, limits)) / 10;
  auto text = fmt::format("{:.1f} % in use: {}, {}", percent,
                          use_text("MiB", used >> kMebibyteBits, limits.bytes_max >> kMebibyteBits),
                          use_text("events", use.events, limits.events_max));
  if (!is_full) return text;
  return text +
         fmt::format(
             "; nothing older than {} days is left, events are refused; {} MiB are kept events, versions, "
             "ids and tombstones, which no purge frees",
             limits.keep_days, bytes_that_stay(use, limits.has_search) >> kMebibyteBits);
}

std::int64_t events_to_drop(const TopicUse& use, const TopicLimits& limits) {
  std::int64_t events = 0;
  if (limits.events_max > 0) events = use.events - limits.events_max;
  if (limits.bytes_max > 0 && use.bytes > limits.bytes_max && use.events > 0) {
    const auto size = std::max<std::int64_t>(1, use.bytes / use.events);
    events = std::max(events, (use.bytes - limits.bytes_max + size - 1) / size);
  }
  return std::clamp<std::int64_t>(events, 0, std::max<std::int64_t>(0, use.events));
}

OldestPurge purge_with(pg::Pool& pool, const Clock& clock) {
  return {[&pool, &clock](std::int32_t keep_days, std::int32_t regular_days) {
            return purge_week_of(pool, {clock.now(), keep_days, regular_days});
          },
          [&pool, &clock, places = std::make_shared<TopicPlaces>()](std::string topic, std::int64_t events) {
            return purge_from_topic(pool, places, {std::move(topic), clock.now(), events});
          }};
}

CapacityKeeper::CapacityKeeper(const Executor& executor, CapacityLimits limits, OldestPurge purge,
                               const TopicBook& topics, pg::Pool& pool, outbox::Pressure& pressure,
                               HealthBoard& health, metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "capacity",
                       .failed = "what the database holds was not read",
                       .every = kLookEvery,
                       .begins_at_once = true},
                      registry),
      limits_(std::make_shared<const CapacityLimits>(limits)),
      purge_(std::move(purge)),
      topics_(topics),
      pool_(pool),
      pressure_(pressure),
      health_(health),
      size_(registry.gauge("todoke_database_bytes", "Size of the database on the disk.")),
      bytes_(registry.gauge("todoke_capacity_bytes",
                            "What counts of it against capacity.max_bytes: room that was freed does not.")),
      bytes_max_(registry.gauge("todoke_capacity_bytes_max", "capacity.max_bytes; 0: no limit.")),
      events_(registry.gauge("todoke_capacity_events", "Stored events.")),
      events_max_(registry.gauge("todoke_capacity_events_max", "capacity.max_events; 0: no limit.")),
      stays_(registry.gauge("todoke_capacity_lasting_bytes",
                            "What of todoke_capacity_bytes no purge frees: kept events, versions, ids, "
                            "tombstones.")),
      node_full_(registry.gauge("todoke_capacity_node_full",
                                "1: all of the capacity is in use and nothing may be purged.")),
      weeks_(registry.counter("todoke_capacity_partitions_purged_total",
                              "Weeks that went for want of capacity.")),
      of_topics_(registry.counter("todoke_capacity_topic_events_purged_total",
                                  "Events that went because their topic was full (drop_oldest).")) {}

Task<void> CapacityKeeper::run() {
  co_await PeriodicService::run();
  health_.forget("capacity in use");
}

void CapacityKeeper::set_limits(const CapacityLimits& limits) {
  limits_.store(std::make_shared<const CapacityLimits>(limits));
  wake_up();
}

Task<void> CapacityKeeper::round(RoundCause cause) {
  const auto limits = *limits_.load();
  const bool is_due = limits.any() || cause == RoundCause::woken || looks_until_measured_-- <= 0;
  if (is_due) {
    looks_until_measured_ = kLooksWithoutLimit;
    const auto use = co_await measure();
    const auto share = share_in_use(use, limits);
    const auto before = pressure_.of(outbox::PressureInput::capacity);
    const auto level = outbox::next_capacity_pressure(before, share);
    pressure_.set(outbox::PressureInput::capacity, level);
    if (level == outbox::kPressureMax) {
      co_await purge_week(limits, share);
    } else {
      pressure_.set_node_full(false);
    }
    report(use, limits);
  }
  co_await purge_topics();
}

Task<DatabaseUse> CapacityKeeper::measure() {
  const auto deadline = Deadline::after(kLookMax);
  const auto lease = co_await pool_.acquire(deadline);
  co_return co_await database_use(*lease, deadline);
}

Task<void> CapacityKeeper::purge_week(const CapacityLimits& limits, std::int64_t share) {
  const auto result = co_await purge_.week(limits.keep_days, limits.regular_days);
  const bool was_full = pressure_.is_node_full();
  if (result == WeekPurge::under_way) wake_up();
  // Nobody waits for ever for a purge that takes long or that somebody holds up.
  const bool may_come = result == WeekPurge::under_way || result == WeekPurge::put_off;
  if (may_come && share < kShareWithoutPurge) co_return;
  // Once it is full it stays so until the step is given back.
  const bool is_full = result != WeekPurge::dropped && (was_full || share >= kShareFull);
  pressure_.set_node_full(is_full);
  if (result == WeekPurge::dropped) {
    weeks_.add();
    log::warning("capacity", "the oldest week was purged: the node's capacity was in use");
  }
  if (was_full || !is_full) co_return;
  log::error("capacity",
             "the node's capacity is in use and nothing older than capacity.keep_days can go: events are "
             "refused (restricted: capacity)",
             {{"keep_days", limits.keep_days}});
}

Task<pg::Result> CapacityKeeper::topics_over() {
  const auto deadline = Deadline::after(kLookMax);
  const auto lease = co_await pool_.acquire(deadline);
  auto rows = co_await lease->query(sql::kTopicsOver, {kTopicsOfRound}, deadline);
  co_return rows;
}

Task<void> CapacityKeeper::purge_topics() {
  const auto topics = topics_.topics();
  const auto& limited = topics->limited();
  if (std::none_of(limited.begin(), limited.end(),
                   [&](const auto& topic) { return topics->limits_of(topic)->drop_oldest; })) {
    co_return;
  }
  const auto over = co_await topics_over();
  for (const auto& row : over) {
    const TopicUse use{row.get<std::int64_t>("events"), row.get<std::int64_t>("bytes")};
    const TopicLimits limits{row.get<std::int64_t>("events_max"), row.get<std::int64_t>("bytes_max"), true};
    const auto drop = std::min(events_to_drop(use, limits), kTopicEventsOfRound);
    if (drop > 0) {
      const auto gone = co_await purge_.of_topic(row.get<std::string>("topic_id"), drop);
      of_topics_.add(static_cast<std::uint64_t>(gone));
    }
    if (stop_asked()) co_return;
  }
}

void CapacityKeeper::report(const DatabaseUse& use, const CapacityLimits& limits) {
  const auto used = std::min(use.size, bytes_needed(use, limits.has_search));
  size_.set(static_cast<double>(use.size));
  bytes_.set(static_cast<double>(used));
  bytes_max_.set(static_cast<double>(limits.bytes_max));
  stays_.set(static_cast<double>(bytes_that_stay(use, limits.has_search)));
  events_.set(static_cast<double>(use.events));
  events_max_.set(static_cast<double>(limits.events_max));
  const bool is_full = pressure_.is_node_full();
  node_full_.set(is_full ? 1 : 0);
  const bool is_pressed = pressure_.of(outbox::PressureInput::capacity) > 0;
  health_.report("capacity in use", false,
                 {is_pressed ? HealthState::degraded : HealthState::up, capacity_text(use, limits, is_full)});
}

}  // namespace todoke::relay
