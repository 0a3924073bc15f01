#include "relay/capacity.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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

// A walk that meets many events that may not go, because they have another topic, ends here and begins anew.
constexpr int kPagesOfTopic = 50;
constexpr std::chrono::milliseconds kPause(20);
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

Task<void> purge_week_into(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                           OldestWeek& week, Deadline deadline) {
  week = co_await purge_oldest_week(connection, at, keep_days, pause_between_steps, deadline);
}

Task<WeekPurge> purge_week_of(pg::Pool& pool, SystemTime at, std::int32_t keep_days) {
  const auto deadline = Deadline::after(kPurgeMax);
  const auto lease = co_await pool.acquire(deadline);
  OldestWeek week;
  const bool was_free = co_await with_purge_lock(
      *lease,
      [&](pg::Connection& connection) { return purge_week_into(connection, at, keep_days, week, deadline); },
      deadline);
  if (!was_free || week.held) co_return WeekPurge::put_off;
  co_return week.dropped ? WeekPurge::dropped : WeekPurge::none_left;
}

Task<void> purge_pages(pg::Connection& connection, std::string topic, SystemTime at, std::int64_t events,
                       std::int64_t& gone, Deadline deadline) {
  TopicPage page;
  for (int pages = 0; pages < kPagesOfTopic && gone < events && !page.is_last; ++pages) {
    page = co_await purge_oldest_of_topic(connection, topic, at, page.last_seq, events - gone, deadline);
    gone += page.purged.events;
    co_await pause_between_steps();
  }
}

Task<std::int64_t> purge_from_topic(pg::Pool& pool, SystemTime at, std::string topic, std::int64_t events) {
  const auto deadline = Deadline::after(kPurgeMax);
  const auto lease = co_await pool.acquire(deadline);
  std::int64_t gone = 0;
  co_await with_purge_lock(
      *lease,
      [&](pg::Connection& connection) { return purge_pages(connection, topic, at, events, gone, deadline); },
      deadline);
  co_return gone;
}

}  // namespace

CapacityLimits capacity_from(const Config& config) {
  return {config.get(keys::kCapacityBytes), config.get(keys::kCapacityEvents),
          static_cast<std::int32_t>(config.get(keys::kCapacityKeepDays)), search_is_on(config)};
}

Task<DatabaseUse> database_use(pg::Connection& connection, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kDatabaseUse, {}, deadline);
  const auto row = rows.one();
  co_return DatabaseUse{row.get<std::int64_t>("size"), row.get<std::int64_t>("events"),
                        row.get<std::int64_t>("bytes")};
}

std::int64_t bytes_needed(const DatabaseUse& use, bool has_search) {
  return use.bytes / 10 * (has_search ? kNeededTenthsWithSearch : kNeededTenths);
}

std::int64_t share_in_use(const DatabaseUse& use, const CapacityLimits& limits) {
  return std::max(
      outbox::share_in_use(std::min(use.size, bytes_needed(use, limits.has_search)), limits.bytes_max),
      outbox::share_in_use(use.events, limits.events_max));
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
  return {[&pool, &clock](std::int32_t keep_days) { return purge_week_of(pool, clock.now(), keep_days); },
          [&pool, &clock](std::string topic, std::int64_t events) {
            return purge_from_topic(pool, clock.now(), std::move(topic), events);
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
      co_await purge_week(limits.keep_days, share);
    } else {
      pressure_.set_node_full(false);
    }
    report(use, limits, share);
  }
  co_await purge_topics();
}

Task<DatabaseUse> CapacityKeeper::measure() {
  const auto deadline = Deadline::after(kLookMax);
  const auto lease = co_await pool_.acquire(deadline);
  co_return co_await database_use(*lease, deadline);
}

Task<void> CapacityKeeper::purge_week(std::int32_t keep_days, std::int64_t share) {
  const auto result = co_await purge_.week(keep_days);
  const bool was_full = pressure_.is_node_full();
  // Nobody waits for ever for a purge that somebody holds up.
  if (result == WeekPurge::put_off && share < kShareWithoutPurge) co_return;
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
             {{"keep_days", keep_days}});
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

void CapacityKeeper::report(const DatabaseUse& use, const CapacityLimits& limits, std::int64_t share) {
  const auto used = std::min(use.size, bytes_needed(use, limits.has_search));
  size_.set(static_cast<double>(use.size));
  bytes_.set(static_cast<double>(used));
  bytes_max_.set(static_cast<double>(limits.bytes_max));
  events_.set(static_cast<double>(use.events));
  events_max_.set(static_cast<double>(limits.events_max));
  const bool is_full = pressure_.is_node_full();
  node_full_.set(is_full ? 1 : 0);
  const bool is_pressed = pressure_.of(outbox::PressureInput::capacity) > 0;
  const auto percent = static_cast<double>(share) / 10;
  auto text = fmt::format("{:.1f} % in use: {}, {}", percent,
                          use_text("MiB", used >> kMebibyteBits, limits.bytes_max >> kMebibyteBits),
                          use_text("events", use.events, limits.events_max));
  if (is_full)
    text += fmt::format("; nothing older than {} days is left, events are refused", limits.keep_days);
  if (!limits.any()) text.clear();
  health_.report("capacity in use", false, {is_pressed ? HealthState::degraded : HealthState::up, text});
}

}  // namespace todoke::relay
