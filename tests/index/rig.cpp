#include "index/rig.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "outbox/log_row.hpp"
#include "pg/transaction.hpp"

namespace todoke::index {
namespace {

constexpr pg::Statement kReadLog{
    "read_log",
    "SELECT seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key, reason "
    "FROM cn_relay.events_outbox WHERE seq > $1 ORDER BY seq"};

pg::PoolOptions pool_options(const std::string& url) {
  pg::PoolOptions options;
  options.connect.url = url;
  options.connections_max = 4;
  return options;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out.push_back(c);
    if (c == '\'') out.push_back(c);
  }
  return out + "'";
}

std::string array_of(const std::vector<std::string>& values) {
  std::vector<std::string> all;
  for (const auto& value : values) all.push_back(quoted(value));
  return fmt::format("ARRAY[{}]::text[]", fmt::join(all, ", "));
}

Task<void> keep(std::vector<std::pair<std::int64_t, std::int64_t>>& progress, std::int64_t done,
                std::int64_t total) {
  progress.emplace_back(done, total);
  co_return;
}

}  // namespace

Rig::Rig() : pool_(pool_options(db_.url()), clock_, registry_) {}

std::string Rig::write(const Written& event) {
  ++written_;
  // Neither in the order of writing nor in the opposite one.
  const auto id =
      fmt::format("{:016x}{:048x}", static_cast<std::uint64_t>(written_) * 0x9E37'79B9'7F4A'7C15U, written_);
  sql(
      fmt::format("INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, "
                  "ingested_seq, source, "
                  "non_public, topics) VALUES ('{}', '{}', {}, {}, {}, {}, '', {}, 'ws', {}, {})",
                  id, std::string(64, event.author), event.kind, event.created_at, quoted(event.tags_json),
                  quoted(event.content), written_, event.non_public, array_of(event.topics)));
  for (const auto& topic : event.topics) upsert(id, topic);
  return id;
}

void Rig::upsert(const std::string& id, const std::string& topic) {
  sql(fmt::format(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 'upsert', event_id, {}, kind, created_at, ingested_at FROM cn_relay.events "
      "WHERE event_id = '{}'",
      quoted(topic), id));
}

void Rig::retire(const std::string& id) {
  sql(fmt::format(
      "UPDATE cn_relay.events SET deleted_at = now() WHERE event_id = '{0}'; "
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at, reason) "
      "SELECT 'delete', event_id, t, kind, created_at, ingested_at, 'nip09' "
      "FROM cn_relay.events, unnest(topics) t WHERE event_id = '{0}'",
      id));
}

Task<void> Rig::apply_rows(std::int64_t from) {
  const auto lease = co_await pool_.acquire(soon());
  auto transaction = co_await pg::begin(*lease, soon());
  pg::Params params(from);
  const auto found = co_await lease->query(kReadLog, std::move(params), soon());
  auto rows = outbox::read_rows(found);
  const auto events = co_await outbox::load_events(*lease, rows, soon());
  if (!rows.empty()) last_seq_ = rows.back().seq.value;
  // Rows of purged events don't come to a consumer.
  std::erase_if(rows, [&](const outbox::LogRow& row) {
    return row.op == outbox::Op::upsert && !events.contains(row.event_id);
  });
  if (!rows.empty()) {
    const outbox::Work work{*lease, consumer_.name(), rows, events, soon()};
    co_await consumer_.apply(work);
  }
  co_await transaction.commit(soon());
}

void Rig::apply() {
  apply_from(last_seq_);
}

void Rig::apply_from(std::int64_t seq) {
  run_task([&]() -> Task<void> { co_await apply_rows(seq); });
}

Task<void> Rig::rebuild_and_swap_now() {
  const outbox::Consumer::Progress tell = [this](pg::Connection&, std::int64_t done, std::int64_t total) {
    return keep(progress, done, total);
  };
  co_await consumer_.rebuild(pool_, tell);
  const auto lease = co_await pool_.acquire(soon());
  auto transaction = co_await pg::begin(*lease, soon());
  co_await consumer_.swap(*lease, soon());
  co_await transaction.commit(soon());
}

void Rig::rebuild_and_swap() {
  run_task([&]() -> Task<void> { co_await rebuild_and_swap_now(); });
}

Expected<SearchPage> Rig::page(SearchQuery query) {
  return run_task(
      [&]() -> Task<Expected<SearchPage>> { co_return co_await search(pool_, clock_, query, soon()); });
}

std::vector<std::string> Rig::find_by(SearchQuery query) {
  const auto result = page(std::move(query));
  if (!result) throw std::runtime_error(result.error().message);
  std::vector<std::string> contents;
  for (const auto& hit : result->hits) {
    contents.push_back(
        one(fmt::format("SELECT content FROM cn_relay.events WHERE event_id = '{}'", hit.event_id)));
  }
  return contents;
}

std::vector<std::string> Rig::find(const std::string& text) {
  SearchQuery query;
  query.text = text;
  return find_by(query);
}

std::string Rig::one(const std::string& select) {
  return run_task([&]() -> Task<std::string> {
    const auto lease = co_await pool_.acquire(soon());
    const auto sql = fmt::format("SELECT (({}))::text", select);
    const auto rows = co_await lease->query({"", sql}, {}, soon());
    co_return rows.one().get<std::optional<std::string>>(0).value_or("NULL");
  });
}

}  // namespace todoke::index
