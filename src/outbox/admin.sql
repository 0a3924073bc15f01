-- Looking after consumers. Each change and its row in cn_admin.audit are one statement.

-- name: list_consumers
SELECT c.consumer, c.last_seq, b.rows, b.seconds, b.head, c.mandatory, c.paused, c.state, c.epoch, c.owner, c.lease_until > clock_timestamp() AS held,
  extract(epoch FROM clock_timestamp() - c.updated_at)::double precision AS idle, c.purged_rows,
  (SELECT count(*) FROM cn_relay.consumer_dead_letters d WHERE d.consumer = c.consumer) AS dead_letters,
  c.rebuild_done, c.rebuild_total,
  extract(epoch FROM clock_timestamp() - c.rebuild_since)::double precision AS rebuilding_for,
  EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'consumer_' || c.consumer) AS has_role
FROM cn_relay.consumer_offsets c JOIN cn_relay.backlogs() b USING (consumer)
WHERE $1::text IS NULL OR c.consumer = $1
ORDER BY c.consumer LIMIT 1000;

-- name: set_paused
WITH was AS (SELECT consumer, paused FROM cn_relay.consumer_offsets WHERE consumer = $1 FOR UPDATE),
changed AS (UPDATE cn_relay.consumer_offsets c SET paused = $2 FROM was w WHERE c.consumer = w.consumer RETURNING c.consumer)
SELECT c.consumer, cn_admin.note(CASE WHEN $2 THEN 'consumer pause' ELSE 'consumer resume' END, 'consumer ' || c.consumer,
  jsonb_build_object('paused', w.paused), jsonb_build_object('paused', $2))
FROM changed c JOIN was w USING (consumer);

-- name: floor
SELECT dropped_until FROM cn_relay.log_floor;

-- The last seq before a moment: a replay from there repeats everything since.
-- name: seq_before
SELECT coalesce(max(seq), 0) FROM (
  SELECT o.seq FROM cn_relay.events_outbox o WHERE o.appended_at < to_timestamp($1)
  ORDER BY o.seq DESC LIMIT 1) before;

-- name: move_offset
WITH was AS (SELECT consumer, last_seq FROM cn_relay.consumer_offsets WHERE consumer = $1 FOR UPDATE),
changed AS (
  UPDATE cn_relay.consumer_offsets c SET last_seq = $2, updated_at = now() FROM was w WHERE c.consumer = w.consumer
  RETURNING c.consumer)
SELECT c.consumer, cn_admin.note('consumer replay', 'consumer ' || c.consumer, jsonb_build_object('last_seq', w.last_seq),
  jsonb_build_object('last_seq', $2))
FROM changed c JOIN was w USING (consumer);

-- name: ask_for_rebuild
WITH was AS (SELECT consumer, state FROM cn_relay.consumer_offsets WHERE consumer = $1 FOR UPDATE),
changed AS (
  UPDATE cn_relay.consumer_offsets c SET state = 'rebuilding', rebuild_done = 0, rebuild_total = 0, rebuild_since = NULL
  FROM was w WHERE c.consumer = w.consumer
  RETURNING c.consumer)
SELECT c.consumer, cn_admin.note('consumer rebuild', 'consumer ' || c.consumer, jsonb_build_object('state', w.state),
  jsonb_build_object('state', 'rebuilding'))
FROM changed c JOIN was w USING (consumer);

-- name: list_dead_letters
SELECT id, seq, op, event_id, topic_id, error, tries,
  to_char(failed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
FROM cn_relay.consumer_dead_letters WHERE consumer = $1 ORDER BY seq LIMIT $2;

-- name: drop_dead_letters
WITH gone AS (
  DELETE FROM cn_relay.consumer_dead_letters WHERE consumer = $1 AND ($2::bigint IS NULL OR seq = $2) RETURNING seq),
noted AS (
  SELECT cn_admin.note('dead letters drop', 'consumer ' || $1, jsonb_build_object('seq', $2, 'rows', count(*)))
  FROM gone HAVING count(*) > 0)
SELECT g.seq FROM gone g LEFT JOIN noted n ON true;

-- name: retry_dead_letters
WITH asked AS (
  UPDATE cn_relay.consumer_dead_letters SET retry = true WHERE consumer = $1 AND ($2::bigint IS NULL OR seq = $2)
  RETURNING seq),
noted AS (
  SELECT cn_admin.note('dead letters retry', 'consumer ' || $1, NULL, jsonb_build_object('seq', $2, 'rows', count(*)))
  FROM asked HAVING count(*) > 0)
SELECT a.seq FROM asked a LEFT JOIN noted n ON true;
