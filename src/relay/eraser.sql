-- Erasing the events of those who have asked to vanish. A pass reads every partition of events block by block, side by side:
-- no index finds the events of an author, of whatever topic and state, and each ingest would pay for one.

-- name: vanish_pass
SELECT p.number, p.under_way, p.next_block, p.events_end, p.versions_end,
  (SELECT count(*) FROM cn_relay.vanish_requests q WHERE q.done_at IS NULL) AS waiting
FROM cn_relay.vanish_pass p;

-- One relay begins or ends a pass at a time.
-- name: hold_pass
SELECT FROM cn_relay.vanish_pass FOR UPDATE;

-- The $1 oldest requests. A later statement says how far the pass goes: what is moved after this one is noticed.
-- name: claim_requests
UPDATE cn_relay.vanish_requests q SET pass = p.number + 1, moved = false
FROM cn_relay.vanish_pass p
WHERE NOT p.under_way AND q.done_at IS NULL AND q.pubkey IN (
  SELECT o.pubkey FROM cn_relay.vanish_requests o WHERE o.done_at IS NULL ORDER BY o.requested_at LIMIT $1);

-- What comes after the requests is refused, so the pass ends where the tables end now.
-- name: begin_pass
UPDATE cn_relay.vanish_pass p SET number = p.number + 1, under_way = true, next_block = 0,
  events_end = (SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint
                FROM pg_partition_tree('cn_relay.events') t WHERE t.isleaf),
  versions_end = (SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint
                  FROM pg_partition_tree('cn_relay.current_versions') t WHERE t.isleaf)
WHERE NOT p.under_way AND EXISTS (SELECT FROM cn_relay.vanish_requests q WHERE q.pass = p.number + 1);

-- The events between two places of each partition that are to be erased in pass $1. MATERIALIZED: a row of the page costs a
-- probe for its author, and a gift wrap one for each recipient, however many have asked to vanish.
-- name: find_vanished
WITH page AS MATERIALIZED (
  SELECT e.event_id, e.pubkey, e.created_at, e.ingested_at, e.lifetime, e.raw,
    CASE WHEN e.kind = 1059 THEN e.tags::text END AS tags
  FROM cn_relay.events e
  WHERE e.ctid >= $2::text::tid AND e.ctid < $3::text::tid AND e.kind <> 62)
SELECT p.event_id, p.created_at, p.ingested_at, p.lifetime::text, p.raw
FROM page p
WHERE (SELECT q.until >= p.created_at FROM cn_relay.vanish_requests q WHERE q.pubkey = p.pubkey AND q.pass = $1)
  OR (p.tags IS NOT NULL AND EXISTS (
    SELECT FROM cn_relay.vanish_requests q
    WHERE q.pubkey = ANY (cn_relay.recipients_in(p.tags)) AND q.pass = $1 AND q.until >= p.created_at));

-- Marks of versions whose events were purged before.
-- name: forget_versions
DELETE FROM cn_relay.current_versions c
WHERE c.ctid >= $2::text::tid AND c.ctid < $3::text::tid
  AND (SELECT q.until >= c.created_at FROM cn_relay.vanish_requests q WHERE q.pubkey = c.pubkey AND q.pass = $1);

-- What consumers could not handle of these events, with what they said of it.
-- name: forget_dead_letters
DELETE FROM cn_relay.consumer_dead_letters WHERE event_id = ANY ($1::text[]);

-- name: advance_pass
UPDATE cn_relay.vanish_pass SET next_block = $3 WHERE number = $1 AND under_way AND next_block = $2;

-- A request of which a row was moved meanwhile waits for the next pass; so does one that was repeated.
-- name: settle_requests
UPDATE cn_relay.vanish_requests q SET pass = NULL, done_at = CASE WHEN NOT q.moved THEN now() END
FROM cn_relay.vanish_pass p
WHERE p.number = $1 AND p.under_way AND q.pass = $1;

-- name: end_pass
UPDATE cn_relay.vanish_pass SET under_way = false WHERE number = $1 AND under_way;
