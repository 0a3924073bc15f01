// What is trending in each topic: what people reply to, react to and repost within a window, the newer the
// more. Computed every `every`, not when somebody asks: an answer comes from memory.
//
// Of each topic that somebody may ask about, kTrendsMax events are kept, for kTrendTopicsMax topics at most
// (those with the most subscribers). The database looks at kTrendSignalsMax events of a topic, some topics in
// a statement, with a pause after each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_table.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "users/desk.hpp"

namespace todoke::users {

inline constexpr std::size_t kTrendsMax = 50;
inline constexpr std::size_t kTrendTopicsMax = 2'000;
inline constexpr std::size_t kTrendSignalsMax = 1'000;

struct Trend {
  std::string event_id;
  double score = 0;
  std::int64_t replies = 0;
  std::int64_t reactions = 0;
  std::int64_t reposts = 0;
};

struct Trends {
  HashMap<std::string, std::vector<Trend>> by_topic;  // the best first
  SystemTime computed_at;
};

// Replaced whole; null until the first round has ended.
using TrendBook = SharedValue<Trends>;

class Trending final : public PeriodicService {
 public:
  // `pool`: of the background.
  Trending(const Executor& executor, std::chrono::milliseconds every, pg::Pool& pool, DeskPtr desk,
           std::shared_ptr<TrendBook> book, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;
  Task<pg::Result> ask(pg::Statement statement, pg::Params params);

  pg::Pool& pool_;
  const DeskPtr desk_;
  const std::shared_ptr<TrendBook> book_;
  metrics::Gauge& topics_;
};

}  // namespace todoke::users
