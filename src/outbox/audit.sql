-- Recounting.

-- name: audited_consumers
SELECT consumer, last_seq FROM cn_relay.consumer_offsets ORDER BY consumer;

-- name: recorded_ranges
SELECT from_seq, to_seq, row_count, row_hash FROM cn_relay.consumer_ranges WHERE consumer = $1 ORDER BY from_seq;

-- name: rows_between
SELECT seq, op, event_id, topic_id FROM cn_relay.events_outbox WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3;

-- Where a page of $3 rows ends.
-- name: page_end
SELECT max(seq) FROM (
  SELECT seq FROM cn_relay.events_outbox WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) p;

-- name: log_bounds
SELECT f.dropped_until, (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) FROM cn_relay.log_floor f;

-- Upserts of (from, to] whose event is not there, and whether it was purged: its week was dropped, or it went by itself.
-- name: upserts_without_event
SELECT o.seq, o.event_id, o.ingested_at < (
  SELECT coalesce(min((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\)'))[1]::timestamptz), now())
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'cn_relay.events_regular'::regclass)
    OR EXISTS (SELECT FROM cn_relay.event_dedupe d WHERE d.event_id = o.event_id AND d.purged_at IS NOT NULL) AS is_dropped
FROM cn_relay.events_outbox o
WHERE o.seq > $1 AND o.seq <= $2 AND o.op = 'upsert'
  AND NOT EXISTS (SELECT FROM cn_relay.events e WHERE e.event_id = o.event_id AND e.ingested_at = o.ingested_at)
ORDER BY o.seq;

-- What operators have removed, after seq $1.
-- name: removals
SELECT seq, event_id FROM cn_relay.events_outbox
WHERE seq > $1 AND op = 'delete' AND reason IN ('operator', 'dsar') ORDER BY seq LIMIT $2;

-- Events that have lost their effect since the oldest row of the log, without a delete row for it: $1 of them. One statement,
-- because the log has no index for events: it reads both tables once and joins them by hash. Mark and row come in one
-- transaction, so that a running relay shows none.
-- name: losses_without_row
SELECT e.event_id FROM cn_relay.events e
WHERE coalesce(e.deleted_at, e.superseded_at, e.expired_at) IS NOT NULL AND cardinality(e.topics) > 0
  AND least(e.deleted_at, e.superseded_at, e.expired_at) > (
    SELECT CASE WHEN f.dropped_until = 0 THEN '-infinity'
                ELSE (SELECT o.appended_at FROM cn_relay.events_outbox o ORDER BY o.seq LIMIT 1) END
    FROM cn_relay.log_floor f)
  AND NOT EXISTS (SELECT FROM cn_relay.events_outbox o
                  WHERE o.op = 'delete' AND o.event_id = e.event_id AND o.ingested_at = e.ingested_at)
ORDER BY e.event_id LIMIT $1;

-- Of the next $2 events after the id $1 those whose first row should be in ($3, $4] and is not; with the last id and the number
-- of events. The floor is read again: retention goes on meanwhile.
-- name: events_without_row
WITH page AS MATERIALIZED (
  SELECT e.event_id, e.ingested_seq FROM cn_relay.events e WHERE e.event_id > $1 ORDER BY e.event_id LIMIT $2)
SELECT (SELECT max(event_id) FROM page), (SELECT count(*) FROM page), ARRAY(
  SELECT p.event_id FROM page p
  WHERE p.ingested_seq > greatest($3, (SELECT dropped_until FROM cn_relay.log_floor)) AND p.ingested_seq <= $4
    AND NOT EXISTS (SELECT FROM cn_relay.events_outbox o WHERE o.seq = p.ingested_seq AND o.event_id = p.event_id)
  ORDER BY p.event_id);
