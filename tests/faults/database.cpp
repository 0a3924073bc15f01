#include "faults/database.hpp"

#include <stdexcept>

#include <libpq-fe.h>

namespace todoke::test {
namespace {

struct ResultDeleter {
  void operator()(PGresult* result) const { PQclear(result); }
};

constexpr const char* kProblems = R"(
SELECT 'stored twice: ' || event_id FROM cn_relay.events GROUP BY event_id HAVING count(*) > 1
UNION ALL
SELECT 'logged twice: ' || op || ' ' || event_id FROM cn_relay.events_outbox
  GROUP BY event_id, topic_id, op HAVING count(*) > 1
UNION ALL
SELECT 'not logged for each of its topics: ' || e.event_id FROM cn_relay.events e
  WHERE (SELECT array_agg(topic_id ORDER BY seq) FROM cn_relay.events_outbox o
         WHERE o.event_id = e.event_id AND o.op = 'upsert') IS DISTINCT FROM e.topics
UNION ALL
SELECT 'logged but not stored: ' || o.event_id FROM cn_relay.events_outbox o
  WHERE o.op = 'upsert' AND NOT EXISTS (SELECT FROM cn_relay.events e WHERE e.event_id = o.event_id)
UNION ALL
SELECT 'ingested_seq is not its first seq: ' || e.event_id FROM cn_relay.events e
  WHERE e.ingested_seq IS DISTINCT FROM
        (SELECT min(seq) FROM cn_relay.events_outbox o WHERE o.event_id = e.event_id)
UNION ALL
SELECT 'in the log with another time: ' || e.event_id
  FROM cn_relay.events e JOIN cn_relay.events_outbox o USING (event_id) WHERE o.ingested_at <> e.ingested_at
UNION ALL
SELECT 'links do not fit its state: ' || e.event_id FROM cn_relay.events e
  WHERE (SELECT count(*) FROM cn_relay.event_topics l WHERE l.event_id = e.event_id) <>
        CASE WHEN e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL
             THEN cardinality(e.topics) ELSE 0 END
UNION ALL
SELECT 'deletes in the log do not fit its state: ' || e.event_id FROM cn_relay.events e
  WHERE (SELECT count(*) FROM cn_relay.events_outbox o WHERE o.event_id = e.event_id AND o.op = 'delete') <>
        CASE WHEN e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL
             THEN 0 ELSE cardinality(e.topics) END
UNION ALL
SELECT 'no row of event_dedupe, or one too many: ' || event_id
  FROM cn_relay.events e FULL JOIN cn_relay.event_dedupe d USING (event_id)
  WHERE e.event_id IS NULL OR d.event_id IS NULL
UNION ALL
SELECT 'several versions in effect: ' || effective_key FROM cn_relay.effective_events
  WHERE effective_key IS NOT NULL GROUP BY effective_key HAVING count(*) > 1
UNION ALL
SELECT 'the current version is another: ' || c.effective_key FROM cn_relay.current_versions c
  WHERE (c.gone_at IS NULL) <> EXISTS (SELECT FROM cn_relay.effective_events e WHERE e.event_id = c.event_id)
LIMIT 20)";

}  // namespace

std::string conninfo_of(const std::filesystem::path& data_dir) {
  return "host=" + (data_dir / "run").string() + " user=todoke dbname=todoke";
}

void Database::Closer::operator()(pg_conn* connection) const {
  PQfinish(connection);
}

Database::Database(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
}

void Database::run(const std::string& sql) {
  column(sql);
}

std::vector<std::string> Database::column(const std::string& sql) {
  const std::unique_ptr<PGresult, ResultDeleter> result(PQexec(connection_.get(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  std::vector<std::string> values;
  for (int i = 0; i < PQntuples(result.get()); ++i) values.emplace_back(PQgetvalue(result.get(), i, 0));
  return values;
}

std::string Database::value(const std::string& sql) {
  auto values = column(sql);
  if (values.size() != 1) throw std::runtime_error(std::to_string(values.size()) + " rows for " + sql);
  return std::move(values.front());
}

std::string problems_in_store(Database& database) {
  std::string text;
  for (const auto& problem : database.column(kProblems)) text += problem + "\n";
  return text;
}

std::set<std::string> stored_ids(Database& database) {
  const auto ids = database.column("SELECT event_id FROM cn_relay.events");
  return {ids.begin(), ids.end()};
}

}  // namespace todoke::test
