-- Emptying the log.

-- One process at a time does this; the lock belongs to the session.
-- name: try_retention_lock
SELECT pg_try_advisory_lock(cn_names.lock_retention());

-- name: retention_unlock
SELECT pg_advisory_unlock(cn_names.lock_retention());

-- A partition is complete when the log has gone beyond it; then its times don't change any more.
-- name: note_times
UPDATE cn_relay.log_partitions p
SET first_at = (SELECT o.appended_at FROM cn_relay.events_outbox o
                WHERE o.seq >= p.first_seq AND o.seq < p.end_seq ORDER BY o.seq LIMIT 1),
  last_at = (SELECT o.appended_at FROM cn_relay.events_outbox o
             WHERE o.seq >= p.first_seq AND o.seq < p.end_seq ORDER BY o.seq DESC LIMIT 1)
WHERE p.last_at IS NULL AND p.end_seq <= (SELECT max(seq) FROM cn_relay.events_outbox);

-- Complete partitions whose last row is older than $1 seconds, the oldest first. One without rows is old.
-- name: old_partitions
SELECT p.first_seq, p.table_name, coalesce(p.last_at < clock_timestamp() - make_interval(secs => $2), true) AS beyond_max,
  coalesce((SELECT max(o.seq) FROM cn_relay.events_outbox o
            WHERE o.seq >= p.first_seq AND o.seq < p.end_seq), 0) AS last_seq
FROM cn_relay.log_partitions p
WHERE p.end_seq <= (SELECT max(seq) FROM cn_relay.events_outbox)
  AND coalesce(p.last_at < clock_timestamp() - make_interval(secs => $1), true)
ORDER BY p.first_seq;

-- name: log_bytes
SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint
FROM pg_inherits i WHERE i.inhparent = 'cn_relay.events_outbox'::regclass;

-- The mandatory consumer that is furthest behind, unless it has lost its place already.
-- name: slowest_mandatory
SELECT consumer, last_seq FROM cn_relay.consumer_offsets
WHERE mandatory AND state <> 'needs_rebuild' ORDER BY last_seq LIMIT 1;

-- name: drop_log_partition
SELECT cn_relay.drop_log_partition($1);

-- name: raise_floor
UPDATE cn_relay.log_floor SET dropped_until = greatest(dropped_until, $1);

-- A consumer that had not read the rows that are gone can't go on as if nothing had happened. A row that somebody has locked is
-- left out: its own next move marks it (offset_passes), or the next round. $1: how far it must have read to be marked at all.
-- name: mark_lost
UPDATE cn_relay.consumer_offsets c SET state = 'needs_rebuild'
FROM (SELECT o.consumer FROM cn_relay.consumer_offsets o
      WHERE o.last_seq >= $1 AND o.last_seq < (SELECT dropped_until FROM cn_relay.log_floor) AND o.state = 'live'
      FOR NO KEY UPDATE SKIP LOCKED) lost
WHERE c.consumer = lost.consumer
RETURNING c.consumer;

-- The last of the rows that delete_old_rows would take; 0: none.
-- name: old_rows_end
SELECT coalesce(max(o.seq), 0)
FROM (SELECT seq, appended_at FROM cn_relay.events_outbox
      WHERE seq <= least($2, (SELECT max(seq) FROM cn_relay.events_outbox) - 1) ORDER BY seq LIMIT $3) o
WHERE o.appended_at < clock_timestamp() - make_interval(secs => $1);

-- Rows of a partition that is still written, in small batches: older than $1 seconds, up to seq $2, which is not the last. A
-- consumer that had not read them is marked in the same statement, or it could pass over them in between (as in mark_lost, one
-- that has locked its offset is marked later).
-- name: delete_old_rows
WITH gone AS (
  DELETE FROM cn_relay.events_outbox
  WHERE seq <= $2 AND appended_at < clock_timestamp() - make_interval(secs => $1) RETURNING seq
), told AS (
  UPDATE cn_relay.log_floor SET dropped_until = greatest(dropped_until, $2)
), unread AS MATERIALIZED (
  SELECT consumer FROM cn_relay.consumer_offsets WHERE last_seq < $2 AND state = 'live'
  FOR NO KEY UPDATE SKIP LOCKED
), lost AS (
  UPDATE cn_relay.consumer_offsets c SET state = 'needs_rebuild' FROM unread u WHERE c.consumer = u.consumer
  RETURNING c.consumer)
SELECT (SELECT count(*) FROM gone), (SELECT coalesce(array_agg(consumer), '{}') FROM lost);

-- Whether there are rows older than $1 seconds beyond seq $2, apart from the last.
-- name: old_rows_after
SELECT EXISTS (
  SELECT FROM (SELECT appended_at FROM cn_relay.events_outbox
               WHERE seq > $2 AND seq < (SELECT max(seq) FROM cn_relay.events_outbox) ORDER BY seq LIMIT 1) o
  WHERE o.appended_at < clock_timestamp() - make_interval(secs => $1));

-- Deletes what was kept for rows that are gone, up to $1 for each consumer.
-- name: delete_old_effects
DELETE FROM cn_relay.consumer_effects e
USING cn_relay.log_floor f, cn_relay.consumer_offsets c, LATERAL (
  SELECT x.consumer, x.event_id, x.topic_id, x.op FROM cn_relay.consumer_effects x
  WHERE x.consumer = c.consumer AND x.seq <= f.dropped_until ORDER BY x.seq LIMIT $1) old
WHERE e.consumer = old.consumer AND e.event_id = old.event_id AND e.topic_id = old.topic_id AND e.op = old.op;

-- Recorded ranges whose first part, up to seq $1, is about to go. Of one that is torn, rows went before this was noted.
-- name: ranges_to_cut
SELECT r.consumer, r.from_seq, r.from_seq < f.dropped_until AS torn
FROM cn_relay.consumer_ranges r, cn_relay.log_floor f
WHERE r.from_seq < $1 AND r.to_seq > $1 AND r.row_count >= 0;

-- Takes the rows up to $1 out of these ranges, so that what is left of them can still be recounted. Count and hash of what goes are
-- the log's own: a row that was recorded wrongly keeps differing. $4 -1: how much is left is not known. A range that
-- somebody has locked is left out and is torn then.
-- name: cut_ranges
UPDATE cn_relay.consumer_ranges r
SET from_seq = $1, row_count = CASE WHEN c.row_count < 0 THEN -1 ELSE greatest(r.row_count - c.row_count, 0) END,
  row_hash = r.row_hash # c.row_hash
FROM (SELECT x.consumer, x.from_seq, k.row_count, k.row_hash
      FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS k (consumer, from_seq, row_count, row_hash)
      JOIN cn_relay.consumer_ranges x USING (consumer, from_seq)
      WHERE x.to_seq > $1 AND x.row_count >= 0
      FOR UPDATE OF x SKIP LOCKED) c
WHERE r.consumer = c.consumer AND r.from_seq = c.from_seq;

-- name: delete_old_ranges
DELETE FROM cn_relay.consumer_ranges WHERE to_seq <= (SELECT dropped_until FROM cn_relay.log_floor);
