#include "consumers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace todoke::test {
namespace {

constexpr pg::Statement kRecord{"record",
                                "INSERT INTO effects (consumer, seq, op, event_id, topic_id) "
                                "SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[])"};

constexpr std::int64_t kPageRows = 10;

}  // namespace

void Recorder::before(Hook hook) {
  const std::lock_guard lock(mutex_);
  hooks_.before = std::move(hook);
}

void Recorder::after(Hook hook) {
  const std::lock_guard lock(mutex_);
  hooks_.after = std::move(hook);
}

void Recorder::also_run(std::function<std::string(const outbox::Work&)> sql) {
  const std::lock_guard lock(mutex_);
  hooks_.sql = std::move(sql);
}

void Recorder::wait_for(std::shared_ptr<Signal> signal) {
  const std::lock_guard lock(mutex_);
  hooks_.signal = std::move(signal);
}

Recorder::Hooks Recorder::hooks() {
  const std::lock_guard lock(mutex_);
  return hooks_;
}

std::vector<std::size_t> Recorder::batches() const {
  const std::lock_guard lock(mutex_);
  return batches_;
}

Task<void> Recorder::apply(outbox::Work work) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(work.rows.size());
  }
  const auto hooks_now = hooks();
  if (hooks_now.before) hooks_now.before(work);
  auto script = hooks_now.sql ? hooks_now.sql(work) : std::string();
  if (!script.empty()) co_await work.connection.execute_script(std::move(script), work.deadline);
  if (hooks_now.signal) co_await hooks_now.signal->wait();
  std::vector<outbox::LogRow> rows(work.rows.begin(), work.rows.end());
  if (options_.once) rows = co_await outbox::claim(work, *options_.once);
  std::vector<std::int64_t> seqs;
  std::vector<std::string> ops;
  std::vector<std::string> ids;
  std::vector<std::string> topics;
  for (const auto& row : rows) {
    seqs.push_back(row.seq.value);
    ops.emplace_back(to_string(row.op));
    ids.push_back(row.event_id);
    topics.push_back(row.topic_id);
  }
  pg::Params params(name_, seqs, ops, ids, topics);
  co_await work.connection.query(kRecord, std::move(params), work.deadline);
  if (hooks_now.after) hooks_now.after(work);
}

Task<void> Recorder::rebuild(pg::Pool&, Progress) {
  co_return;
}

Task<void> Recorder::swap(pg::Connection&, Deadline) {
  co_return;
}

Task<void> Mirror::apply(outbox::Work work) {
  for (const auto& row : work.rows) {
    const auto sql =
        row.op == outbox::Op::upsert
            ? fmt::format("INSERT INTO {} VALUES ('{}') ON CONFLICT DO NOTHING", name_, row.event_id)
            : fmt::format("DELETE FROM {} WHERE event_id = '{}'", name_, row.event_id);
    co_await work.connection.execute_script(sql, work.deadline);
  }
}

Task<void> Mirror::rebuild(pg::Pool& pool, Progress progress) {
  const auto deadline = Deadline::after(std::chrono::seconds(60));
  const auto lease = co_await pool.acquire(deadline);
  auto script =
      fmt::format("DROP TABLE IF EXISTS {0}_new; CREATE TABLE {0}_new (event_id text PRIMARY KEY)", name_);
  co_await lease->execute_script(std::move(script), deadline);
  const auto count =
      co_await lease->query({"mirror_count", "SELECT count(*) FROM cn_relay.effective_events"}, {}, deadline);
  const auto total = count.one().get<std::int64_t>(0);
  const auto page = fmt::format(
      "INSERT INTO {}_new SELECT event_id FROM cn_relay.effective_events WHERE event_id > $1 ORDER BY "
      "event_id LIMIT $2 "
      "RETURNING event_id",
      name_);
  std::string last;
  for (std::int64_t done = 0;;) {
    pg::Params params(last, kPageRows);
    const auto rows = co_await lease->query({"mirror_page", page}, std::move(params), deadline);
    for (const auto& row : rows) last = std::max(last, row.get<std::string>(0));
    done += static_cast<std::int64_t>(rows.size());
    co_await progress(*lease, done, std::max(done, total));
    if (rows.size() < static_cast<std::size_t>(kPageRows)) break;
    between_pages();
    if (const auto waited_for = pause; waited_for) co_await waited_for->wait();
  }
}

Task<void> Mirror::swap(pg::Connection& connection, Deadline deadline) {
  before_swap();
  auto script = fmt::format("DROP TABLE {0}; ALTER TABLE {0}_new RENAME TO {0}", name_);
  co_await connection.execute_script(std::move(script), deadline);
}

bool has_seq(const outbox::Work& work, std::int64_t seq) {
  return std::any_of(work.rows.begin(), work.rows.end(),
                     [&](const auto& row) { return row.seq.value == seq; });
}

}  // namespace todoke::test
