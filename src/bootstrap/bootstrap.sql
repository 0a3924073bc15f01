-- What the node says of itself. Its events are found by their key in current_versions: kind, author and `d`.

-- name: descriptors
SELECT c.event_id, c.event_json::text AS json, c.created_at
FROM cn_bootstrap.keys k JOIN cn_relay.addressable_current c ON c.effective_key = '39000:' || k.pubkey || ':descriptor'
WHERE k.algorithm = 'node' AND k.withdrawn_at IS NULL AND c.gone_at IS NULL;

-- ';' follows ':', so the range holds the services of the topic and no others.
-- name: topic_services
SELECT c.event_id, c.event_json::text AS json, c.created_at
FROM cn_bootstrap.keys k JOIN cn_relay.addressable_current c
  ON c.effective_key >= '39001:' || k.pubkey || ':topic_service:' || $1::text || ':'
  AND c.effective_key < '39001:' || k.pubkey || ':topic_service:' || $1::text || ';'
WHERE k.algorithm = 'node' AND k.withdrawn_at IS NULL AND c.gone_at IS NULL
ORDER BY c.effective_key;

-- `json` is NULL for what is no longer in effect.
-- name: hints_after
SELECT h.seq, h.event_id, coalesce(c.created_at, 0) AS created_at, c.event_json::text AS json
FROM (SELECT * FROM cn_bootstrap.hints h WHERE h.seq > $1 ORDER BY h.seq LIMIT $2) h
  LEFT JOIN LATERAL (
    SELECT c.created_at, c.event_json FROM cn_bootstrap.keys k JOIN cn_relay.addressable_current c
      ON c.effective_key = h.kind::text || ':' || k.pubkey || ':' || h.d
    WHERE k.algorithm = 'node' AND c.event_id = h.event_id AND c.gone_at IS NULL LIMIT 1) c ON true
ORDER BY h.seq;

-- For as long as the session lives.
-- name: try_bootstrap_lock
SELECT pg_try_advisory_lock(cn_names.lock_bootstrap());

-- name: node_key_in_use
SELECT k.pubkey FROM cn_bootstrap.keys k WHERE k.algorithm = 'node' AND k.withdrawn_at IS NULL;

-- How many of these keys are in use.
-- name: keys_in_use
SELECT count(*) FROM cn_bootstrap.keys k WHERE k.pubkey = ANY ($1::text[]) AND k.withdrawn_at IS NULL;

-- name: withdraw_other_keys
UPDATE cn_bootstrap.keys k SET withdrawn_at = now() WHERE k.withdrawn_at IS NULL AND k.pubkey <> ALL ($1::text[]);

-- name: put_keys
INSERT INTO cn_bootstrap.keys AS k (algorithm, pubkey) SELECT * FROM unnest($1::text[], $2::text[])
ON CONFLICT (pubkey) DO UPDATE SET withdrawn_at = NULL, since = now() WHERE k.withdrawn_at IS NOT NULL;

-- Withdrawn long ago, and nothing is left that they have signed.
-- name: forget_keys
DELETE FROM cn_bootstrap.keys k
WHERE k.withdrawn_at < now() - interval '1 day'
  AND NOT EXISTS (SELECT FROM cn_relay.event_tags g WHERE g.name = '.' AND g.value = k.pubkey);

-- name: taken_topics
SELECT n.topic_id FROM cn_relay.node_subscriptions n WHERE n.enabled ORDER BY n.created_at, n.topic_id LIMIT $1;

-- name: own_documents
SELECT c.event_json::text AS json FROM cn_relay.addressable_current c
WHERE c.gone_at IS NULL AND ((c.effective_key >= '39000:' || $1::text || ':' AND c.effective_key < '39000:' || $1::text || ';')
  OR (c.effective_key >= '39001:' || $1::text || ':' AND c.effective_key < '39001:' || $1::text || ';'));

-- What is in effect and has no hint yet. The `d` begins after kind, key and two colons.
-- name: note_hints
INSERT INTO cn_bootstrap.hints (kind, d, event_id)
SELECT c.kind, substr(c.effective_key, 72), c.event_id FROM cn_relay.addressable_current c
WHERE c.gone_at IS NULL AND ((c.effective_key >= '39000:' || $1::text || ':' AND c.effective_key < '39000:' || $1::text || ';')
  OR (c.effective_key >= '39001:' || $1::text || ':' AND c.effective_key < '39001:' || $1::text || ';'))
  AND NOT EXISTS (SELECT FROM cn_bootstrap.hints h WHERE h.event_id = c.event_id)
ORDER BY c.created_at, c.effective_key;

-- name: drop_old_hints
DELETE FROM cn_bootstrap.hints h WHERE h.seq <= (SELECT max(n.seq) FROM cn_bootstrap.hints n) - $1;

-- Events of a key that are in effect, apart from those that nobody can delete.
-- name: signed_by
SELECT e.json FROM cn_relay.event_tags g CROSS JOIN LATERAL (
  SELECT json_build_object('id', e.event_id, 'pubkey', e.pubkey, 'created_at', e.created_at, 'kind', e.kind,
    'tags', e.tags, 'content', e.content, 'sig', e.sig)::text AS json
  FROM cn_relay.events e
  WHERE e.event_id = g.event_id AND e.ingested_at = g.ingested_at AND e.lifetime = g.lifetime
    AND e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL AND e.kind NOT IN (5, 62) LIMIT 1) e
WHERE g.name = '.' AND g.value = $1 LIMIT $2;
