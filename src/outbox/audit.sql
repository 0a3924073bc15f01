-- Recounting.

-- name: audited_consumers
SELECT consumer, last_seq, state FROM cn_relay.consumer_offsets ORDER BY consumer;

-- name: recorded_ranges
SELECT from_seq, to_seq, row_count, row_hash FROM cn_relay.consumer_ranges WHERE consumer = $1 ORDER BY from_seq;

-- name: rows_between
SELECT seq, op, event_id, topic_id FROM cn_relay.events_outbox WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3;

-- name: log_bounds
SELECT f.dropped_until, (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) FROM cn_relay.log_floor f;

-- Upserts of (from, to] whose event is not there. Its month has been dropped, or an operator has removed it: purged.
-- Otherwise it is lost.
-- name: upserts_without_event
SELECT o.seq, o.event_id,
  o.ingested_at < coalesce((
    SELECT min((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\)'))[1]::timestamptz)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'cn_relay.events_regular'::regclass), now())
  OR EXISTS (SELECT FROM cn_relay.events_outbox d
             WHERE d.seq > o.seq AND d.event_id = o.event_id AND d.op = 'delete' AND d.reason IN ('operator', 'dsar'))
  AS purged
FROM (SELECT * FROM cn_relay.events_outbox WHERE seq > $1 AND seq <= $2 AND op = 'upsert') o
WHERE NOT EXISTS (SELECT FROM cn_relay.events e WHERE e.event_id = o.event_id AND e.ingested_at = o.ingested_at)
ORDER BY o.seq;

-- Events whose first row should be in (from, to] and is not; $3 at most. The floor is read again: retention goes on
-- meanwhile.
-- name: events_without_row
SELECT e.event_id, e.ingested_seq FROM cn_relay.events e
WHERE e.ingested_seq > greatest($1, (SELECT dropped_until FROM cn_relay.log_floor)) AND e.ingested_seq <= $2
  AND NOT EXISTS (SELECT FROM cn_relay.events_outbox o WHERE o.seq = e.ingested_seq AND o.event_id = e.event_id)
ORDER BY e.ingested_seq LIMIT $3;
