#include "users/trending.hpp"

#include <algorithm>
#include <utility>

#include "users/discovery_sql.hpp"

namespace todoke::users {
namespace {

constexpr std::chrono::seconds kTrendStatementMax(30);
// So that a statement looks at some ten thousand events.
constexpr std::size_t kTopicsAtOnce = 10;
// As long as a statement of this size takes: the others get half of the time.
constexpr std::chrono::milliseconds kPauseBetween(100);

void add_trends(Trends& trends, const pg::Result& rows) {
  for (const auto& row : rows) {
    trends.by_topic[row.get<std::string>("topic_id")].push_back(
        {row.get<std::string>("target"), row.get<double>("score"), row.get<std::int64_t>("replies"),
         row.get<std::int64_t>("reactions"), row.get<std::int64_t>("reposts")});
  }
}

}  // namespace

Trending::Trending(const Executor& executor, std::chrono::milliseconds every, pg::Pool& pool, DeskPtr desk,
                   std::shared_ptr<TrendBook> book, metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "trending",
                       .failed = "what is trending was not computed",
                       .every = every,
                       .begins_at_once = true},
                      registry),
      pool_(pool),
      desk_(std::move(desk)),
      book_(std::move(book)),
      topics_(registry.gauge("todoke_users_trending_topics", "Topics in which something is trending.")) {}

Task<pg::Result> Trending::ask(pg::Statement statement, pg::Params params) {
  const auto deadline = Deadline::after(kTrendStatementMax);
  const auto lease = co_await pool_.acquire(deadline);
  auto result = co_await lease->query(statement, std::move(params), deadline);
  co_return result;
}

Task<void> Trending::round(RoundCause /*cause*/) {
  const auto found = co_await ask(sql::kTrendingTopics, {static_cast<std::int64_t>(kTrendTopicsMax)});
  std::vector<std::string> topics;
  for (const auto& row : found) topics.push_back(row.get<std::string>(0));
  const auto window =
      std::chrono::duration_cast<std::chrono::seconds>(desk_->settings()->trending_window).count();
  Trends trends;
  for (std::size_t i = 0; i < topics.size(); i += kTopicsAtOnce) {
    if (stop_asked()) co_return;
    const auto first = topics.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = std::min(kTopicsAtOnce, topics.size() - i);
    const std::vector<std::string> some(first, first + static_cast<std::ptrdiff_t>(count));
    pg::Params params(some, static_cast<std::int64_t>(window), static_cast<std::int64_t>(kTrendSignalsMax),
                      static_cast<std::int64_t>(kTrendsMax));
    const auto rows = co_await ask(sql::kComputeTrends, std::move(params));
    add_trends(trends, rows);
    co_await pause(kPauseBetween);
  }
  trends.computed_at = desk_->now();
  topics_.set(static_cast<double>(trends.by_topic.size()));
  book_->store(std::make_shared<const Trends>(std::move(trends)));
}

}  // namespace todoke::users
