-- Erasing the events of those who have asked to vanish, and of what the operator has blocked and wants erased. A pass reads
-- every partition of events block by block, side by side: no index finds the events of an author, of whatever topic and
-- state, and each ingest would pay for one.

-- `has_blocks`: the pass that is under way looks for blocks, too.
-- name: erase_pass
SELECT p.number, p.under_way, p.next_block, p.events_end, p.versions_end, p.rest_until <= now() AS is_rested,
  (SELECT count(*) FROM cn_relay.vanish_requests q WHERE q.done_at IS NULL) AS requests,
  EXISTS (SELECT FROM cn_relay.blocks b WHERE b.erase_at IS NOT NULL AND b.erased_at IS NULL) AS blocks_wait,
  EXISTS (SELECT FROM cn_relay.blocks b WHERE b.pass = p.number) AS has_blocks
FROM cn_relay.erase_pass p;

-- One relay begins or ends a pass at a time.
-- name: hold_pass
SELECT FROM cn_relay.erase_pass FOR UPDATE;

-- The $1 oldest requests. A later statement says how far the pass goes: what is moved after this one is noticed.
-- name: claim_requests
UPDATE cn_relay.vanish_requests q SET pass = p.number + 1, moved = false
FROM cn_relay.erase_pass p
WHERE NOT p.under_way AND q.done_at IS NULL AND q.pubkey IN (
  SELECT o.pubkey FROM cn_relay.vanish_requests o WHERE o.done_at IS NULL ORDER BY o.requested_at LIMIT $1);

-- The same for blocks.
-- name: claim_blocks
UPDATE cn_relay.blocks b SET pass = p.number + 1, moved = false
FROM cn_relay.erase_pass p
WHERE NOT p.under_way AND (b.kind, b.value) IN (
  SELECT o.kind, o.value FROM cn_relay.blocks o
  WHERE o.erase_at IS NOT NULL AND o.erased_at IS NULL ORDER BY o.erase_at LIMIT $1);

-- What comes after the requests is refused, so the pass ends where the tables end now.
-- name: begin_pass
UPDATE cn_relay.erase_pass p SET number = p.number + 1, under_way = true, began_at = now(), next_block = 0,
  events_end = (SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint
                FROM pg_partition_tree('cn_relay.events') t WHERE t.isleaf),
  versions_end = (SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint
                  FROM pg_partition_tree('cn_relay.current_versions') t WHERE t.isleaf)
WHERE NOT p.under_way AND (EXISTS (SELECT FROM cn_relay.vanish_requests q WHERE q.pass = p.number + 1)
  OR EXISTS (SELECT FROM cn_relay.blocks b WHERE b.pass = p.number + 1));

-- The events between two places of each partition that are to be erased in pass $1, with the reason for the log. $4: the pass
-- looks for blocks, too. MATERIALIZED: a row of the page costs a probe for its author, and a gift wrap one for each
-- recipient, however many have asked to vanish. IS NOT DISTINCT FROM: the index on `pass` would find all of the pass, for
-- each row.
-- name: find_doomed
WITH page AS MATERIALIZED (
  SELECT e.event_id, e.pubkey, e.kind, e.created_at, e.ingested_at, e.lifetime, e.topics,
    CASE WHEN e.kind = 1059 THEN e.tags::text END AS tags
  FROM cn_relay.events e
  WHERE e.ctid >= $2::text::tid AND e.ctid < $3::text::tid
), judged AS MATERIALIZED (
  SELECT p.event_id, p.ingested_at, p.lifetime, CASE
    WHEN p.kind <> 62 AND (SELECT q.until >= p.created_at FROM cn_relay.vanish_requests q
                           WHERE q.pubkey = p.pubkey AND q.pass IS NOT DISTINCT FROM $1) THEN 'dsar'
    WHEN p.tags IS NOT NULL AND EXISTS (
      SELECT FROM cn_relay.vanish_requests q
      WHERE q.pubkey = ANY (cn_relay.recipients_in(p.tags)) AND q.pass IS NOT DISTINCT FROM $1
        AND q.until >= p.created_at) THEN 'dsar'
    WHEN $4 AND (SELECT b.pass IS NOT DISTINCT FROM $1 FROM cn_relay.blocks b
                 WHERE b.kind = 'pubkey' AND b.value = p.pubkey) THEN 'operator'
    -- A request to vanish without a topic stands under one that it does not name.
    WHEN $4 AND p.kind <> 62 AND (
      SELECT true FROM unnest(p.topics) AS t (id) CROSS JOIN LATERAL (
        SELECT FROM cn_relay.blocks b
        WHERE b.kind = 'topic' AND b.value = t.id AND b.pass IS NOT DISTINCT FROM $1 LIMIT 1) x
      LIMIT 1) THEN 'operator'
    END AS reason
  FROM page p)
SELECT j.event_id, j.ingested_at, j.lifetime::text, j.reason FROM judged j WHERE j.reason IS NOT NULL;

-- Marks of versions whose events were purged before.
-- name: forget_versions
DELETE FROM cn_relay.current_versions c
WHERE c.ctid >= $2::text::tid AND c.ctid < $3::text::tid
  AND ((SELECT q.until >= c.created_at FROM cn_relay.vanish_requests q
        WHERE q.pubkey = c.pubkey AND q.pass IS NOT DISTINCT FROM $1)
    OR (SELECT b.pass IS NOT DISTINCT FROM $1 FROM cn_relay.blocks b WHERE b.kind = 'pubkey' AND b.value = c.pubkey));

-- name: advance_pass
UPDATE cn_relay.erase_pass SET next_block = $3 WHERE number = $1 AND under_way AND next_block = $2;

-- A request of which a row was moved meanwhile waits for the next pass; so does one that was repeated.
-- name: settle_requests
UPDATE cn_relay.vanish_requests q SET pass = NULL, done_at = CASE WHEN NOT q.moved THEN now() END
FROM cn_relay.erase_pass p
WHERE p.number = $1 AND p.under_way AND q.pass = $1;

-- name: settle_blocks
UPDATE cn_relay.blocks b SET pass = NULL, erased_at = CASE WHEN NOT b.moved THEN now() END
FROM cn_relay.erase_pass p
WHERE p.number = $1 AND p.under_way AND b.pass = $1;

-- Requests to vanish rest four times as long as the pass took, and $2 to $3 seconds: whoever sends one after the other with
-- fresh keys makes the node read its events a fifth of the time, and all that come meanwhile share the next pass. The longest
-- is for a pass that stood still while no node ran.
-- name: end_pass
UPDATE cn_relay.erase_pass SET under_way = false,
  rest_until = now() + least(greatest(4 * (now() - began_at), make_interval(secs => $2)), make_interval(secs => $3))
WHERE number = $1 AND under_way;
