#include "support.hpp"

#include <numeric>

#include <fmt/format.h>

namespace todoke::test {
namespace {

constexpr const char* kSetUp = R"(
CREATE TABLE effects (n bigserial, consumer text, seq bigint, op text, event_id text, topic_id text);
CREATE FUNCTION append(events integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  s bigint;
  id text;
BEGIN
  PERFORM cn_relay.lock_log();
  FOR i IN 1..events LOOP
    s := nextval('cn_relay.events_outbox_seq');
    id := lpad(to_hex(s), 64, '0');
    INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq,
                                 source, topics)
      VALUES (id, repeat('a', 64), 1, 1700000000 + s, '[["t","kukuri:global"]]', 'text ' || s, repeat('b', 128), now(),
              s, 'import', ARRAY['kukuri:global']);
    INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at)
      VALUES (s, 'upsert', id, 'kukuri:global', 1, 1700000000 + s, now());
  END LOOP;
  RETURN s;
END $$;
)";

Seqs seqs_of(const Rows& rows) {
  Seqs seqs;
  for (const auto& row : rows) seqs.push_back(std::stoll(row));
  return seqs;
}

}  // namespace

Seqs numbers(std::int64_t from, std::int64_t to) {
  Seqs all(static_cast<std::size_t>(to - from + 1));
  std::iota(all.begin(), all.end(), from);
  return all;
}

LogTest::LogTest() {
  sql.run("SET client_min_messages = warning");
  sql.run(kSetUp);
}

std::int64_t LogTest::append(int events) {
  return number(fmt::format("SELECT append({})", events));
}

std::string LogTest::id_of(std::int64_t seq) {
  return fmt::format("{:064x}", seq);
}

void LogTest::append_row(std::int64_t of_seq, const std::string& op, const std::string& topic,
                         const std::string& reason) {
  sql.run(fmt::format(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at, reason) "
      "SELECT '{}', event_id, '{}', kind, created_at, ingested_at, nullif('{}', '') "
      "FROM cn_relay.events WHERE event_id = '{}'",
      op, topic, reason, id_of(of_seq)));
}

Seqs LogTest::log() {
  return seqs_of(sql.run("SELECT seq FROM cn_relay.events_outbox ORDER BY seq"));
}

Seqs LogTest::effects(const std::string& consumer) {
  return seqs_of(sql.run(fmt::format("SELECT seq FROM effects WHERE consumer = '{}' ORDER BY n", consumer)));
}

std::int64_t LogTest::offset(const std::string& consumer) {
  return number(
      fmt::format("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = '{}'", consumer));
}

std::int64_t LogTest::number(const std::string& statement) {
  return std::stoll(text(statement));
}

std::string LogTest::text(const std::string& statement) {
  const auto rows = sql.run(statement);
  if (rows.size() != 1) throw std::runtime_error(fmt::format("{} rows: {}", rows.size(), statement));
  return rows.front();
}

void LogTest::await_end(const std::string& consumer) {
  ASSERT_TRUE(await([&] {
    return offset(consumer) == number("SELECT max(seq) FROM cn_relay.events_outbox");
  })) << consumer
      << " stands at " << offset(consumer);
}

void LogTest::await_true(const std::string& statement) {
  ASSERT_TRUE(await([&] { return text(statement) == "t"; })) << statement;
}

void LogTest::add_offset(const std::string& consumer, std::int64_t last_seq, bool mandatory) {
  sql.run(fmt::format(
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, updated_at) VALUES ('{}', {}, now())",
      consumer, last_seq));
  if (mandatory) {
    sql.run(
        fmt::format("UPDATE cn_relay.consumer_offsets SET mandatory = true WHERE consumer = '{}'", consumer));
  }
}

}  // namespace todoke::test
