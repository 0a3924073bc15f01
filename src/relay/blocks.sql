-- What the operator keeps out (cn_relay.blocks).

-- A page of those that are in force, after the one of kind $1 and value $2.
-- name: load_blocks
SELECT b.kind, b.value, b.until FROM cn_relay.blocks b
WHERE (b.kind, b.value) > ($1, $2) AND coalesce(b.until, 'infinity') > now()
ORDER BY b.kind, b.value LIMIT $3;

-- Who makes the changes of this transaction.
-- name: block_as
SELECT set_config('cn_admin.actor', $1, true);

-- Those that are over have no effect; nobody waits for what they were to erase.
-- name: drop_over
DELETE FROM cn_relay.blocks b WHERE b.until <= now() AND (b.erase_at IS NULL OR b.erased_at IS NOT NULL);

-- $5: what is stored is to be erased; it begins anew where that was asked for before. No row: there are $7 blocks already.
-- name: put_block
WITH before AS MATERIALIZED (SELECT FROM cn_relay.blocks b WHERE b.kind = $1 AND b.value = $2), put AS (
  INSERT INTO cn_relay.blocks AS b (kind, value, reason, until, erase_at, added_by)
  SELECT $1, $2, $3, $4, CASE WHEN $5 THEN now() END, $6
  WHERE EXISTS (SELECT FROM before) OR (SELECT count(*) FROM cn_relay.blocks) < $7
  ON CONFLICT (kind, value) DO UPDATE SET reason = excluded.reason, until = excluded.until,
    added_at = excluded.added_at, added_by = excluded.added_by,
    erase_at = coalesce(excluded.erase_at, b.erase_at),
    pass = CASE WHEN excluded.erase_at IS NULL THEN b.pass END,
    erased_at = CASE WHEN excluded.erase_at IS NULL THEN b.erased_at END
  RETURNING 1)
SELECT EXISTS (SELECT FROM before) AS was_there FROM put;

-- An event is erased where it stands, without a pass.
-- name: event_erased
UPDATE cn_relay.blocks SET erase_at = now(), erased_at = now() WHERE kind = 'event' AND value = $1;

-- name: remove_block
DELETE FROM cn_relay.blocks WHERE kind = $1 AND value = $2 RETURNING value;

-- name: list_blocks
SELECT b.kind, b.value, b.reason, b.until, b.added_at, b.added_by, b.erase_at, b.erased_at, b.until <= now() AS is_over
FROM cn_relay.blocks b
WHERE ($1::text IS NULL OR b.kind = $1) AND (b.kind, b.value) > ($2, $3)
ORDER BY b.kind, b.value LIMIT $4;

-- Relays follow the log.
-- name: tell_log_head
SELECT pg_notify(cn_names.channel_log(), (CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END)::text)
FROM cn_relay.events_outbox_seq s;

-- How far the erasing of a block has come. No row: it was removed meanwhile.
-- name: block_erasure
SELECT b.erased_at IS NOT NULL AS is_done, p.under_way, p.number, p.next_block, p.events_end + p.versions_end AS blocks
FROM cn_relay.blocks b, cn_relay.erase_pass p WHERE b.kind = $1 AND b.value = $2;
