#include "outbox/admin.hpp"

#include <utility>

#include <fmt/format.h>

#include "outbox/admin_sql.hpp"

namespace todoke::outbox {
namespace {

tl::unexpected<Refusal> no_such(const std::string& name) {
  return refuse(fmt::format("there is no consumer {}; `todoke consumers list` shows them", name));
}

}  // namespace

Task<std::vector<ConsumerView>> list_consumers(pg::Connection& connection, std::optional<std::string> name,
                                               Deadline deadline) {
  pg::Params params(name);
  const auto rows = co_await connection.query(sql::kListConsumers, std::move(params), deadline);
  std::vector<ConsumerView> views;
  for (const auto& row : rows) {
    auto& view = views.emplace_back();
    view.name = row.get<std::string>("consumer");
    view.last_seq = row.get<std::int64_t>("last_seq");
    view.head = row.get<std::int64_t>("head");
    view.backlog_rows = row.get<std::int64_t>("rows");
    view.backlog_seconds = row.get<double>("seconds");
    view.mandatory = row.get<bool>("mandatory");
    view.paused = row.get<bool>("paused");
    view.state = row.get<std::string>("state");
    view.epoch = row.get<std::int64_t>("epoch");
    view.owner = row.get<std::optional<std::string>>("owner");
    view.held = row.get<std::optional<bool>>("held").value_or(false);
    view.idle_seconds = row.get<double>("idle");
    view.purged_rows = row.get<std::int64_t>("purged_rows");
    view.dead_letters = row.get<std::int64_t>("dead_letters");
    view.rebuild_done = row.get<std::int64_t>("rebuild_done");
    view.rebuild_total = row.get<std::int64_t>("rebuild_total");
    view.rebuilding_seconds = row.get<std::optional<double>>("rebuilding_for");
    view.has_role = row.get<bool>("has_role");
  }
  co_return views;
}

Task<Expected<void>> set_paused(pg::Connection& connection, std::string name, bool paused,
                                Deadline deadline) {
  pg::Params params(name, paused);
  const auto rows = co_await connection.query(sql::kSetPaused, std::move(params), deadline);
  if (rows.empty()) co_return no_such(name);
  co_return Expected<void>();
}

Task<Expected<Seq>> replay(pg::Connection& connection, std::string name, ReplayPoint point,
                           Deadline deadline) {
  const auto known = co_await list_consumers(connection, name, deadline);
  if (known.empty()) co_return no_such(name);
  std::int64_t after = point.after_seq.value_or(0);
  if (point.since) {
    pg::Params params(*point.since);
    const auto before = co_await connection.query(sql::kSeqBefore, std::move(params), deadline);
    after = before.one().get<std::int64_t>(0);
  }
  const auto floor = co_await connection.query(sql::kFloor, {}, deadline);
  const auto dropped_until = floor.one().get<std::int64_t>(0);
  if (after < dropped_until) {
    co_return refuse(fmt::format(
        "the log no longer has the rows up to seq {}: replay from there (--from-seq {}), or make everything "
        "anew with `todoke consumers rebuild {}`",
        dropped_until, dropped_until, name));
  }
  if (after > known.front().head) {
    co_return refuse(
        fmt::format("the log ends at seq {}: from {} on there would be nothing to read for a long time",
                    known.front().head, after));
  }
  if (known.front().state == "needs_rebuild") {
    co_return refuse(fmt::format("{} has lost rows of the log: `todoke consumers rebuild {}`", name, name));
  }
  pg::Params params(name, after);
  co_await connection.query(sql::kMoveOffset, std::move(params), deadline);
  co_return Seq{after};
}

Task<Expected<void>> ask_for_rebuild(pg::Connection& connection, std::string name, Deadline deadline) {
  const auto known = co_await list_consumers(connection, name, deadline);
  if (known.empty()) co_return no_such(name);
  if (known.front().epoch == 0) {
    co_return refuse(
        fmt::format("no node has ever run {}: whoever follows the log under that name has to rebuild "
                    "its own store (docs/log.md)",
                    name));
  }
  pg::Params params(name);
  const auto rows = co_await connection.query(sql::kAskForRebuild, std::move(params), deadline);
  if (rows.empty()) co_return no_such(name);
  co_return Expected<void>();
}

Task<std::vector<DeadLetter>> list_dead_letters(pg::Connection& connection, std::string name,
                                                std::int32_t most, Deadline deadline) {
  pg::Params params(name, most);
  const auto rows = co_await connection.query(sql::kListDeadLetters, std::move(params), deadline);
  std::vector<DeadLetter> letters;
  for (const auto& row : rows) {
    letters.push_back({row.get<std::int64_t>(1), row.get<std::string>(2), row.get<std::string>(3),
                       row.get<std::string>(4), row.get<std::string>(5), row.get<std::int32_t>(6),
                       row.get<std::string>(7)});
  }
  co_return letters;
}

Task<std::size_t> retry_dead_letters(pg::Connection& connection, std::string name,
                                     std::optional<std::int64_t> seq, Deadline deadline) {
  pg::Params params(name, seq);
  const auto rows = co_await connection.query(sql::kRetryDeadLetters, std::move(params), deadline);
  co_return rows.size();
}

Task<std::size_t> drop_dead_letters(pg::Connection& connection, std::string name,
                                    std::optional<std::int64_t> seq, Deadline deadline) {
  pg::Params params(name, seq);
  const auto rows = co_await connection.query(sql::kDropDeadLetters, std::move(params), deadline);
  co_return rows.size();
}

}  // namespace todoke::outbox
