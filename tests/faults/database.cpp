#include "faults/database.hpp"

namespace todoke::test {
namespace {

// Set by set: the log has no index for events, so nothing here may look them up one by one.
constexpr const char* kProblems = R"(
WITH log AS MATERIALIZED (
  SELECT event_id, min(seq) AS first_seq, min(ingested_at) AS first_at, max(ingested_at) AS last_at,
    array_agg(topic_id ORDER BY seq) FILTER (WHERE op = 'upsert') AS upserts,
    count(*) FILTER (WHERE op = 'delete') AS deletes
  FROM cn_relay.events_outbox GROUP BY event_id
), links AS MATERIALIZED (
  SELECT event_id, count(*) AS n FROM cn_relay.event_topics GROUP BY event_id
), whole AS MATERIALIZED (
  SELECT event_id, e.event_id IS NOT NULL AS stored, d.event_id IS NOT NULL AS deduped, e.ingested_seq,
    e.ingested_at, e.topics, coalesce(cardinality(e.topics), 0) AS topic_count,
    e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL AS in_effect,
    log.first_seq, log.first_at, log.last_at, log.upserts, coalesce(log.deletes, 0) AS deletes,
    coalesce(links.n, 0) AS links
  FROM cn_relay.events e FULL JOIN log USING (event_id) FULL JOIN links USING (event_id)
    FULL JOIN cn_relay.event_dedupe d USING (event_id)
)
SELECT 'stored twice: ' || event_id FROM cn_relay.events GROUP BY event_id HAVING count(*) > 1
UNION ALL
SELECT 'logged twice: ' || op || ' ' || event_id FROM cn_relay.events_outbox
  GROUP BY event_id, topic_id, op HAVING count(*) > 1
UNION ALL
SELECT 'logged, linked or deduped, but not stored: ' || event_id FROM whole WHERE NOT stored
UNION ALL
SELECT 'not logged for each of its topics: ' || event_id FROM whole WHERE upserts IS DISTINCT FROM topics
UNION ALL
SELECT 'ingested_seq is not its first seq: ' || event_id FROM whole WHERE ingested_seq IS DISTINCT FROM first_seq
UNION ALL
SELECT 'in the log with another time: ' || event_id FROM whole
  WHERE (first_at, last_at) IS DISTINCT FROM (ingested_at, ingested_at)
UNION ALL
SELECT 'links do not fit its state: ' || event_id FROM whole
  WHERE links <> CASE WHEN in_effect THEN topic_count ELSE 0 END
UNION ALL
SELECT 'deletes in the log do not fit its state: ' || event_id FROM whole
  WHERE deletes <> CASE WHEN in_effect THEN 0 ELSE topic_count END
UNION ALL
SELECT 'not in event_dedupe: ' || event_id FROM whole WHERE NOT deduped
UNION ALL
SELECT 'several versions in effect: ' || effective_key FROM cn_relay.effective_events
  WHERE effective_key IS NOT NULL GROUP BY effective_key HAVING count(*) > 1
UNION ALL
SELECT 'the current version is another: ' || c.effective_key FROM cn_relay.current_versions c
  LEFT JOIN cn_relay.effective_events e USING (event_id) WHERE (c.gone_at IS NULL) <> (e.event_id IS NOT NULL)
LIMIT 20)";

}  // namespace

std::string conninfo_of(const std::filesystem::path& data_dir) {
  return "host=" + (data_dir / "run").string() + " user=todoke dbname=todoke";
}

std::string problems_in_store(SqlSession& database) {
  std::string text;
  for (const auto& problem : database.run(kProblems)) text += problem + "\n";
  return text;
}

std::set<std::string> stored_ids(SqlSession& database) {
  const auto ids = database.run("SELECT event_id FROM cn_relay.events");
  return {ids.begin(), ids.end()};
}

}  // namespace todoke::test
