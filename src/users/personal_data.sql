-- Copies and deletions of what is stored about a key.

-- name: ask_for_data
SELECT cn_user.ask_for_data($1, $2)::text AS request_id;

-- A request of its owner.
-- name: get_data_request
SELECT r.request_id::text AS request_id, r.kind, r.status, r.bytes, r.error, r.created_at, r.finished_at, r.expires_at
FROM cn_user.personal_data_requests r
WHERE r.owner_hash = cn_user.owner_hash($1) AND r.kind = $2 AND r.request_id = $3::text::uuid;

-- name: read_chunk
SELECT c.bytes FROM cn_user.export_chunks c WHERE c.request_id = $1::text::uuid AND c.number = $2;

-- Begins or begins anew what a job does for a request. No row: nobody waits for it any more.
-- name: begin_data_request
UPDATE cn_user.personal_data_requests r SET status = 'running'
WHERE r.request_id = $1::text::uuid AND r.status IN ('pending', 'running') AND r.pubkey IS NOT NULL
RETURNING r.pubkey;

-- name: forget_chunks
DELETE FROM cn_user.export_chunks c WHERE c.request_id = $1::text::uuid;

-- name: add_chunk
INSERT INTO cn_user.export_chunks (request_id, number, bytes) VALUES ($1::text::uuid, $2, $3);

-- name: finish_export
UPDATE cn_user.personal_data_requests r SET status = 'succeeded', bytes = $2, finished_at = now(),
  expires_at = now() + make_interval(secs => $3)
WHERE r.request_id = $1::text::uuid AND r.status = 'running';

-- Everything about a key in this schema: a line for each row, with the file that it belongs to.
-- name: export_account
SELECT 'account' AS file, to_jsonb(a)::text AS line FROM cn_user.accounts a WHERE a.pubkey = $1
UNION ALL SELECT 'consents', to_jsonb(c)::text FROM cn_user.policy_consents c WHERE c.pubkey = $1
UNION ALL SELECT 'topic_subscription_requests', to_jsonb(r)::text
  FROM cn_user.topic_subscription_requests r WHERE r.requester_pubkey = $1
UNION ALL SELECT 'topic_subscriptions', to_jsonb(s)::text FROM cn_user.topic_subscriptions s WHERE s.subscriber_pubkey = $1
UNION ALL SELECT 'usage', to_jsonb(u)::text FROM cn_user.usage_counters_daily u WHERE u.pubkey = $1
UNION ALL SELECT 'counted_requests', to_jsonb(e)::text FROM cn_user.usage_events e WHERE e.pubkey = $1
UNION ALL SELECT 'personal_data_requests', to_jsonb(p)::text
  FROM cn_user.personal_data_requests p WHERE p.owner_hash = cn_user.owner_hash($1)
UNION ALL SELECT 'blocks', to_jsonb(b)::text FROM cn_relay.blocks b WHERE b.kind = 'pubkey' AND b.value = $1
UNION ALL SELECT 'vanish_requests', to_jsonb(v)::text FROM cn_relay.vanish_requests v WHERE v.pubkey = $1
UNION ALL SELECT 'deletions', to_jsonb(t)::text FROM cn_relay.deletion_tombstones t WHERE t.pubkey = $1
ORDER BY 1;

-- How many blocks the largest partition of the events has.
-- name: event_blocks
SELECT coalesce(max(pg_relation_size(t.relid)), 0) / current_setting('block_size')::bigint AS blocks
FROM pg_partition_tree('cn_relay.events') t WHERE t.isleaf;

-- The events of a key, and gift wraps for it, between two places of each partition: no index finds the events of an author
-- whatever their topic and state.
-- name: export_events
SELECT json_build_object(
    'event', CASE WHEN e.raw IS NOT NULL THEN convert_from(e.raw, 'UTF8')::json
                  ELSE json_build_object('id', e.event_id, 'pubkey', e.pubkey, 'created_at', e.created_at, 'kind', e.kind,
                         'tags', e.tags, 'content', e.content, 'sig', e.sig) END,
    'ingested_at', e.ingested_at, 'source', e.source, 'topics', e.topics,
    'deleted_at', e.deleted_at, 'superseded_at', e.superseded_at, 'expires_at', e.expires_at)::text AS line
FROM cn_relay.events e
WHERE e.ctid >= $2::text::tid AND e.ctid < $3::text::tid
  AND (e.pubkey = $1 OR (e.kind = 1059 AND $1 = ANY (cn_relay.recipients_in(e.tags::text))));

-- name: forget_person
SELECT cn_user.forget($1);

-- With the log's lock first: what was committed before is found by the pass over the events, what comes later sees the request
-- (relay/eraser.hpp).
-- name: lock_for_vanishing
SELECT pg_advisory_xact_lock(cn_names.lock_log());

-- Everything of the author up to a day from now, which no event that the relay takes is beyond. One that this request has
-- asked for already stays as it is.
-- name: ask_to_vanish
INSERT INTO cn_relay.vanish_requests AS q (pubkey, request_id, until)
VALUES ($1, $2, extract(epoch FROM now())::bigint + 86400)
ON CONFLICT (pubkey) DO UPDATE SET request_id = excluded.request_id, until = greatest(q.until, excluded.until),
  requested_at = excluded.requested_at, pass = NULL, done_at = NULL
WHERE q.request_id <> excluded.request_id;

-- name: has_vanished
SELECT q.done_at IS NOT NULL FROM cn_relay.vanish_requests q WHERE q.pubkey = $1;

-- name: finish_deletion
UPDATE cn_user.personal_data_requests r SET status = 'succeeded', pubkey = NULL, finished_at = now()
WHERE r.request_id = $1::text::uuid AND r.status = 'running';

-- Copies whose time is over, up to $1.
-- name: purge_exports
WITH over AS (
  UPDATE cn_user.personal_data_requests r SET status = 'expired'
  WHERE r.request_id IN (SELECT o.request_id FROM cn_user.personal_data_requests o
                         WHERE o.kind = 'export' AND o.status = 'succeeded' AND o.expires_at < now() LIMIT $1)
  RETURNING r.request_id
)
DELETE FROM cn_user.export_chunks c USING over WHERE c.request_id = over.request_id;

-- name: settle_data_requests
SELECT cn_user.settle_data_requests();
