#include "relay/topic_book.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "nostr/topics.hpp"
#include "pg/channels.hpp"
#include "relay/retention.hpp"
#include "relay/topics_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kPollEvery(5);
constexpr std::chrono::seconds kLoadMax(10);

}  // namespace

TopicSet::TopicSet(const TopicSettings& settings, const RetentionPeriods& periods, Topics enabled)
    : settings_(&settings), periods_(periods), enabled_(std::move(enabled)) {
  for (const auto& [topic, policy] : enabled_) {
    if (policy.limits.events_max > 0 || policy.limits.bytes_max > 0) limited_.push_back(topic);
  }
}

std::optional<nostr::Reason> TopicSet::refusal_of(std::string_view topic, Source source,
                                                  std::int64_t created_at,
                                                  std::chrono::sys_seconds now) const {
  const auto found = enabled_.find(topic);
  if (found == enabled_.end()) return std::nullopt;
  const auto& policy = found->second;
  if (source == Source::backfill) {
    if (policy.allow_backfill) return std::nullopt;
    return nostr::Reason::no_backfill;
  }
  // An operator's import brings old events.
  if (source == Source::import) return std::nullopt;
  const auto oldest = now.time_since_epoch().count() - policy.delay_seconds_max;
  if (policy.delay_seconds_max > 0 && created_at < oldest) return nostr::Reason::too_old_for_topic;
  return std::nullopt;
}

const TopicLimits* TopicSet::limits_of(std::string_view topic) const {
  const auto found = enabled_.find(topic);
  if (found == enabled_.end()) return nullptr;
  const auto& limits = found->second.limits;
  return limits.events_max > 0 || limits.bytes_max > 0 ? &limits : nullptr;
}

bool TopicSet::is_enabled(std::string_view topic) const {
  if (settings_->accept_any) return nostr::is_topic_id(topic, settings_->reserved);
  return enabled_.contains(topic);
}

bool TopicSet::is_kept_longer(std::string_view topic) const {
  const auto found = enabled_.find(topic);
  return found != enabled_.end() && found->second.kept_longer;
}

std::optional<std::int32_t> TopicSet::longest(std::span<const std::string> topics, std::int32_t Topic::* own,
                                              std::int32_t others) const {
  std::int32_t most = 0;
  bool has_own = false;
  for (const auto& topic : topics) {
    const auto found = enabled_.find(topic);
    const auto days = found == enabled_.end() ? 0 : found->second.*own;
    has_own = has_own || days > 0;
    most = std::max(most, days > 0 ? days : others);
  }
  return has_own ? std::optional(most) : std::nullopt;
}

std::optional<std::int32_t> TopicSet::dedupe_days(std::span<const std::string> topics) const {
  return longest(topics, &Topic::dedupe_days, periods_.dedupe);
}

std::optional<std::int32_t> TopicSet::tombstone_days(std::span<const std::string> topics) const {
  return longest(topics, &Topic::tombstone_days, periods_.tombstone);
}

bool TopicSet::is_low_priority(std::string_view topic) const {
  const auto found = enabled_.find(topic);
  return found != enabled_.end() && found->second.low_priority;
}

TopicBook::TopicBook(const Executor& executor, TopicSettings settings, pg::Pool& pool, pg::Listener& listener,
                     metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "topics",
                       .failed = "the list of topics was not read; the old one holds",
                       .every = kPollEvery},
                      registry),
      settings_(std::move(settings)),
      pool_(pool),
      listener_(listener),
      enabled_(registry.gauge("todoke_topics_enabled", "Topics that the node takes.")),
      held_gauge_(registry.gauge(
          "todoke_topics_held",
          "Topics that were enabled while the backlog of the log's consumers is too long; they "
          "are taken when it is shorter.")),
      periods_(std::make_shared<const RetentionPeriods>(settings_.periods)),
      topics_(std::make_shared<const TopicSet>(settings_, settings_.periods, TopicSet::Topics())) {}

void TopicBook::set_periods(const RetentionPeriods& periods) {
  if (*periods_.load() == periods) return;
  periods_.store(std::make_shared<const RetentionPeriods>(periods));
  wake_up();
}

Task<void> TopicBook::start() {
  co_await round(RoundCause::time);
  co_await refuse_periods();
  subscription_ = listener_.subscribe(pg::channels::kTopics, [this](const pg::Wake&) { wake_up(); });
}

Task<void> TopicBook::refuse_periods() {
  const auto deadline = Deadline::after(kLoadMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto problems =
      co_await period_problems(*lease, *periods_.load(), std::nullopt, std::nullopt, deadline);
  if (!problems.empty()) throw UserError(period_text(problems));
}

Task<void> TopicBook::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> TopicBook::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kLoadMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kLoadTopics, {settings_.enabled_max + 1}, deadline);
  const auto periods = *periods_.load();
  const auto before = topics_.load();
  const bool holds_new = has_loaded_ && pressure_ != nullptr &&
                         pressure_->of(outbox::PressureInput::backlog) == outbox::kPressureMax;
  std::size_t held = 0;
  TopicSet::Topics enabled;
  for (const auto& row : rows) {
    if (enabled.size() == static_cast<std::size_t>(settings_.enabled_max)) {
      log::warning("topics",
                   "more topics are enabled than topics.enabled_max allows: the newest are left out",
                   {{"limit", settings_.enabled_max}});
      break;
    }
    if (holds_new && !before->enabled().contains(row.get<std::string>(0))) {
      ++held;
      continue;
    }
    const auto days = row.get<std::optional<std::int64_t>>(1);
    TopicSet::Topic topic;
    topic.kept_longer = days && *days > periods.regular;
    topic.low_priority = row.get<std::string_view>(2) == "low";
    topic.dedupe_days = row.get<std::int32_t>(3);
    topic.tombstone_days = row.get<std::int32_t>(4);
    topic.allow_backfill = row.get<bool>(5);
    topic.delay_seconds_max = row.get<std::int64_t>(6);
    topic.limits = {row.get<std::int64_t>(7), row.get<std::int64_t>(8), row.get<bool>(9)};
    enabled.emplace(row.get<std::string>(0), topic);
  }
  has_loaded_ = true;
  enabled_.set(static_cast<double>(enabled.size()));
  auto fresh = std::make_shared<const TopicSet>(settings_, periods, std::move(enabled));
  const bool has_changed = !(*fresh == *before);
  if (has_changed) topics_.store(std::move(fresh));
  tell_held(held);
  if (has_changed && on_change_) on_change_();
}

void TopicBook::tell_held(std::size_t held) {
  held_gauge_.set(static_cast<double>(held));
  if (held > held_)
    log::warning("topics", "no further topic is taken while a mandatory consumer of the log is so far behind",
                 {{"held", held}});
  held_ = held;
}

}  // namespace todoke::relay
