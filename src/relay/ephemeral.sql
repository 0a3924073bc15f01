-- Ephemeral events on their way to the other relays of this database.

-- Makes the order of ids the order of commits, so that a reader who follows them misses none.
-- name: lock_ephemeral
SELECT pg_advisory_xact_lock(cn_names.lock_ephemeral());

-- name: send_ephemeral
INSERT INTO cn_relay.ephemeral_events (origin, event_json) SELECT $1, e FROM unnest($2::bytea[]) AS e;

-- name: notify_ephemeral
SELECT pg_notify(cn_names.channel_ephemeral(), '');

-- name: read_ephemeral
SELECT id, event_json FROM cn_relay.ephemeral_events WHERE id > $1 AND origin <> $2 ORDER BY id LIMIT $3;

-- name: empty_ephemeral
DELETE FROM cn_relay.ephemeral_events WHERE sent_at < clock_timestamp() - interval '5 seconds';
