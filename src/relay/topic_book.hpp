// The topics that the node takes, as node_subscriptions has them. Follows the table: woken by NOTIFY, and by
// a look every few seconds. Readers get an immutable set and never wait. Two things keep an enabled topic
// out: topics.enabled_max, and the third step of the pressure by backlog.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_table.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "nostr/event.hpp"
#include "nostr/texts.hpp"
#include "outbox/pressure.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/incoming.hpp"
#include "relay/purge.hpp"

namespace todoke::relay {

struct TopicSettings {
  std::vector<std::string> reserved;  // ids beyond the usual forms
  bool accept_any = false;            // every topic id is taken, listed or not
  // The set is loaded whole: 10,000 cost a few megabytes, and some ten milliseconds at a change.
  std::int32_t enabled_max = 10'000;
  RetentionPeriods periods;  // of topics without their own; a topic with more regular days is kept longer
};

// What a topic may hold (topic_gate.hpp). 0: any number.
struct TopicLimits {
  std::int64_t events_max = 0;
  std::int64_t bytes_max = 0;
  bool drop_oldest = false;  // when it is full; otherwise it takes nothing more
  friend bool operator==(const TopicLimits&, const TopicLimits&) = default;
};

// What one state of the table says.
class TopicSet {
 public:
  struct Topic {
    bool kept_longer = false;
    bool low_priority = false;
    // Its own periods in days; 0: it has none.
    std::int32_t dedupe_days = 0;
    std::int32_t tombstone_days = 0;
    bool allow_backfill = true;
    std::int64_t delay_seconds_max = 0;  // 0: events of any age
    TopicLimits limits;
    friend bool operator==(const Topic&, const Topic&) = default;
  };
  using Topics = HashMap<std::string, Topic>;

  TopicSet(const TopicSettings& settings, const RetentionPeriods& periods, Topics enabled);

  [[nodiscard]] bool is_enabled(std::string_view topic) const;
  [[nodiscard]] bool is_kept_longer(std::string_view topic) const;
  // The longest period of these topics where any of them has one of its own: for what outlives the event, and
  // so is noted when it is accepted.
  [[nodiscard]] std::optional<std::int32_t> dedupe_days(std::span<const std::string> topics) const;
  [[nodiscard]] std::optional<std::int32_t> tombstone_days(std::span<const std::string> topics) const;
  [[nodiscard]] bool is_low_priority(std::string_view topic) const;
  // Why the topic does not take such an event: backfill that it does not want, or one that is too old for it.
  [[nodiscard]] std::optional<nostr::Reason> refusal_of(std::string_view topic, Source source,
                                                        std::int64_t created_at,
                                                        std::chrono::sys_seconds now) const;
  // Null: it may hold any number.
  [[nodiscard]] const TopicLimits* limits_of(std::string_view topic) const;
  // The topics that may not hold any number.
  [[nodiscard]] const std::vector<std::string>& limited() const { return limited_; }
  [[nodiscard]] bool has_limits() const { return !limited_.empty(); }
  [[nodiscard]] const Topics& enabled() const { return enabled_; }
  friend bool operator==(const TopicSet& a, const TopicSet& b) {
    return a.periods_ == b.periods_ && a.enabled_ == b.enabled_;
  }

 private:
  [[nodiscard]] std::optional<std::int32_t> longest(std::span<const std::string> topics,
                                                    std::int32_t Topic::* own, std::int32_t others) const;

  const TopicSettings* settings_;
  RetentionPeriods periods_;
  Topics enabled_;
  std::vector<std::string> limited_;
};

class TopicBook final : public PeriodicService {
 public:
  TopicBook(const Executor& executor, TopicSettings settings, pg::Pool& pool, pg::Listener& listener,
            metrics::Registry& registry);

  // Thread-safe.
  [[nodiscard]] std::shared_ptr<const TopicSet> topics() const { return topics_.load(); }
  [[nodiscard]] const TopicSettings& settings() const { return settings_; }
  // Holds for what is accepted from a moment later on. From anywhere.
  void set_periods(const RetentionPeriods& periods);
  // While the backlog presses as hard as it can (outbox/pressure.hpp) no topic is taken that was not taken
  // before; what the table says stays. To be set before start().
  void hold_new_under(const outbox::Pressure& pressure) { pressure_ = &pressure; }
  // Called on the executor after every change. To be set before start().
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;
  // Throws UserError where the periods of topics and those of the node contradict each other.
  Task<void> refuse_periods();
  void tell_held(std::size_t held);

  TopicSettings settings_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  const outbox::Pressure* pressure_ = nullptr;
  bool has_loaded_ = false;
  std::size_t held_ = 0;
  metrics::Gauge& enabled_;     // todoke_topics_enabled
  metrics::Gauge& held_gauge_;  // todoke_topics_held
  pg::Listener::Subscription subscription_;
  std::function<void()> on_change_;
  SharedValue<RetentionPeriods> periods_;
  SharedValue<TopicSet> topics_;
};

}  // namespace todoke::relay
