-- Filling topics from other relays (backfilling.hpp).

-- name: backfill_cursor
SELECT c.seq, c.since FROM cn_relay.backfill_cursors c WHERE c.peer = $1 AND c.topic_id = $2;

-- name: keep_backfill_cursor
INSERT INTO cn_relay.backfill_cursors AS c (peer, topic_id, seq, since) VALUES ($1, $2, $3, $4)
ON CONFLICT (peer, topic_id) DO UPDATE SET seq = excluded.seq, since = excluded.since, updated_at = now();

-- One process of those on a database fills it from other relays. The lock goes with its connection.
-- name: take_backfill_lock
SELECT pg_try_advisory_lock(cn_names.lock_backfill());
