-- Following the log.

-- A consumer that comes when the log has lost its beginning starts with a rebuild. One whose row was deleted begins as if it
-- had never been there.
-- name: add_consumer
WITH added AS (
  INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, mandatory, state)
  SELECT $1, 0, $2, CASE WHEN dropped_until > 0 THEN 'rebuilding' ELSE 'live' END FROM cn_relay.log_floor
  ON CONFLICT (consumer) DO NOTHING
  RETURNING consumer
), effects AS (
  DELETE FROM cn_relay.consumer_effects e USING added WHERE e.consumer = added.consumer
), ranges AS (
  DELETE FROM cn_relay.consumer_ranges r USING added WHERE r.consumer = added.consumer
)
DELETE FROM cn_relay.consumer_dead_letters d USING added WHERE d.consumer = added.consumer;

-- Takes the name over when nobody holds it, or its holder has been silent for too long, by the database's clock.
-- name: take_lease
UPDATE cn_relay.consumer_offsets
SET epoch = epoch + 1, owner = $2, lease_until = clock_timestamp() + make_interval(secs => $3)
WHERE consumer = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp() OR owner = $2)
RETURNING epoch, last_seq;

-- name: give_lease_back
UPDATE cn_relay.consumer_offsets SET owner = NULL, lease_until = NULL WHERE consumer = $1 AND epoch = $2;

-- Renews the lease and reads what the consumer has to know before it goes on.
-- name: renew_lease
UPDATE cn_relay.consumer_offsets SET lease_until = clock_timestamp() + make_interval(secs => $3)
WHERE consumer = $1 AND epoch = $2
RETURNING last_seq, paused, state;

-- name: consumer_state
SELECT last_seq, paused, state, epoch FROM cn_relay.consumer_offsets WHERE consumer = $1;

-- name: log_end
SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox;

-- name: rebuild_begins
UPDATE cn_relay.consumer_offsets
SET rebuild_done = 0, rebuild_total = $3, rebuild_since = coalesce(rebuild_since, clock_timestamp())
WHERE consumer = $1 AND epoch = $2;

-- name: rebuild_goes_on
UPDATE cn_relay.consumer_offsets SET rebuild_done = $3, rebuild_total = $4
WHERE consumer = $1 AND epoch = $2
RETURNING epoch;

-- Records the rows that a rebuild passes over. The consumer took them, but not row by row, so how many is not known (row_count
-- -1).
-- name: pass_over
INSERT INTO cn_relay.consumer_ranges (consumer, from_seq, to_seq, row_count, row_hash)
SELECT c.consumer, c.last_seq, $3, -1, 0 FROM cn_relay.consumer_offsets c
WHERE c.consumer = $1 AND c.epoch = $2 AND c.last_seq < $3 FOR UPDATE
ON CONFLICT (consumer, from_seq) DO UPDATE SET to_seq = excluded.to_seq, row_count = -1, row_hash = 0;

-- The new store is in place and holds what was in effect at $3; the log is followed from there, unless retention has
-- taken rows after it meanwhile.
-- name: rebuild_ends
UPDATE cn_relay.consumer_offsets c
SET last_seq = $3, state = CASE WHEN $3 < f.dropped_until THEN 'needs_rebuild' ELSE 'live' END, rebuild_since = NULL,
  updated_at = clock_timestamp()
FROM (SELECT dropped_until FROM cn_relay.log_floor FOR SHARE) f
WHERE c.consumer = $1 AND c.epoch = $2
RETURNING c.last_seq;

-- name: read_log
SELECT seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key, reason
FROM cn_relay.events_outbox WHERE seq > $1 ORDER BY seq LIMIT $2;

-- Moves the offset from $3 to $4. No row: somebody else holds the name, or has moved the offset.
-- name: advance
UPDATE cn_relay.consumer_offsets
SET last_seq = $4, updated_at = clock_timestamp(), lease_until = clock_timestamp() + make_interval(secs => $5),
  purged_rows = purged_rows + $6
WHERE consumer = $1 AND epoch = $2 AND last_seq = $3
RETURNING last_seq;

-- Adds rows to the range that ends where they begin, or begins a new one.
-- name: record_range
WITH grown AS (
  UPDATE cn_relay.consumer_ranges SET to_seq = $3, row_count = row_count + $4, row_hash = row_hash # $5
  WHERE consumer = $1 AND to_seq = $2 AND row_count BETWEEN 0 AND 99999
  RETURNING 1)
INSERT INTO cn_relay.consumer_ranges (consumer, from_seq, to_seq, row_count, row_hash)
SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM grown);

-- Holds up whoever erases the event until this letter can be seen, so that it goes with the event. Of an event that was
-- accepted and is no longer there nothing is said: its row would be passed over. (The row of its end is kept: it names the id.)
-- name: bury
WITH event AS MATERIALIZED (
  SELECT e.event_id FROM cn_relay.events e WHERE e.event_id = $4 AND e.ingested_at = $8 FOR KEY SHARE)
INSERT INTO cn_relay.consumer_dead_letters (consumer, seq, op, event_id, topic_id, error, tries)
SELECT $1, $2, $3, $4, $5, $6, $7
WHERE EXISTS (SELECT FROM event) OR $3 = 'delete'
  OR NOT EXISTS (SELECT FROM cn_relay.event_dedupe d WHERE d.event_id = $4)
ON CONFLICT (consumer, seq) DO UPDATE SET error = excluded.error, tries = consumer_dead_letters.tries + excluded.tries,
  failed_at = now();

-- A buried row for which somebody asked for another try, as the log has it; without a seq when retention has taken it.
-- name: letter_to_retry
SELECT o.seq, o.op, o.event_id, o.topic_id, o.kind, o.created_at, o.ingested_at, o.effective_key, o.reason, d.seq
FROM cn_relay.consumer_dead_letters d LEFT JOIN cn_relay.events_outbox o ON o.seq = d.seq
WHERE d.consumer = $1 AND d.retry LIMIT 1;

-- Only for who holds the name.
-- name: unbury
DELETE FROM cn_relay.consumer_dead_letters d USING cn_relay.consumer_offsets c
WHERE d.consumer = $1 AND d.seq = $3 AND c.consumer = $1 AND c.epoch = $2 RETURNING d.seq;

-- name: rebury
UPDATE cn_relay.consumer_dead_letters SET retry = false, error = $3, tries = tries + 1, failed_at = now()
WHERE consumer = $1 AND seq = $2;

-- Which of these effects have not happened yet; they count as happened from now on.
-- name: claim_effects
INSERT INTO cn_relay.consumer_effects (consumer, event_id, topic_id, op, seq)
SELECT $1, e.event_id, e.topic_id, e.op, e.seq
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS e (event_id, topic_id, op, seq)
ON CONFLICT DO NOTHING
RETURNING event_id, topic_id, op;

-- Which of these events are still there, with what consumers need of them.
-- name: events_of_rows
SELECT e.* FROM unnest($1::text[], $2::timestamptz[]) AS k (event_id, ingested_at) CROSS JOIN LATERAL (
  SELECT e.event_id, e.pubkey, e.kind, e.created_at, e.tags::text, e.content, e.topics, e.non_public, e.raw IS NOT NULL,
    e.deleted_at IS NULL AND e.superseded_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > now())
  FROM cn_relay.events e WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at LIMIT 1) e;

-- name: backlogs
SELECT c.consumer, c.mandatory, c.paused, c.state, coalesce(c.lease_until > clock_timestamp(), false) AS held,
  b.rows, b.seconds
FROM cn_relay.consumer_offsets c JOIN cn_relay.backlogs() b USING (consumer)
ORDER BY c.consumer LIMIT $1;
