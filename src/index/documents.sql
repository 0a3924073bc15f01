-- Keeping the documents of the index.

-- Documents of events that are in effect. One that is there already changes only where it was deleted, where the event
-- was accepted anew, or where a topic is missing: an event of three topics has three rows in the log.
-- name: put_documents
INSERT INTO cn_search.post_search_documents AS d (event_id, pubkey, kind, created_at, ingested_at, topics, tokens, title,
                                                  summary, tags)
SELECT k.event_id, k.pubkey, k.kind, k.created_at, k.ingested_at, string_to_array(k.topics, E'\x1f'), k.tokens, k.title,
  k.summary, string_to_array(k.tags, ',')::bigint[]
FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::timestamptz[], $6::text[], $7::tsvector[], $8::text[],
            $9::text[], $10::text[])
  AS k (event_id, pubkey, kind, created_at, ingested_at, topics, tokens, title, summary, tags)
ON CONFLICT (event_id) DO UPDATE
SET ingested_at = excluded.ingested_at, tokens = excluded.tokens, title = excluded.title, summary = excluded.summary,
  tags = excluded.tags,
  topics = ARRAY(SELECT t FROM unnest(d.topics || excluded.topics) t GROUP BY t ORDER BY t),
  indexed_at = now(), deleted_at = NULL
WHERE d.deleted_at IS NOT NULL OR d.ingested_at <> excluded.ingested_at OR NOT d.topics @> excluded.topics;

-- name: delete_documents
UPDATE cn_search.post_search_documents
SET deleted_at = now(), tokens = '', tags = '{}', title = NULL, summary = NULL
WHERE event_id = ANY ($1::text[]) AND deleted_at IS NULL;

-- Looks at $2 documents from $1 on and removes those whose event is no longer stored.
-- name: sweep_documents
WITH looked_at AS MATERIALIZED (
  SELECT event_id, ingested_at FROM cn_search.post_search_documents
  WHERE event_id > $1 ORDER BY event_id LIMIT $2),
purged AS MATERIALIZED (
  SELECT d.event_id FROM cn_search.post_search_documents d JOIN looked_at l USING (event_id, ingested_at)
  WHERE NOT EXISTS (SELECT FROM cn_relay.events e WHERE e.event_id = l.event_id AND e.ingested_at = l.ingested_at)
  FOR UPDATE OF d SKIP LOCKED),
removed AS (
  DELETE FROM cn_search.post_search_documents d USING purged p WHERE d.event_id = p.event_id RETURNING 1)
SELECT (SELECT max(event_id) FROM looked_at), (SELECT count(*) FROM looked_at), (SELECT count(*) FROM removed);

-- ---------------------------------------------------------------------------------------------- rebuild

-- name: lock_rebuild
SELECT pg_advisory_lock(cn_names.lock_rebuild());

-- name: unlock_rebuild
SELECT pg_advisory_unlock(cn_names.lock_rebuild());

-- name: begin_rebuild
SELECT cn_search.begin_rebuild();

-- An estimate: counting takes as long as reading.
-- name: count_events
SELECT coalesce(sum(c.reltuples) FILTER (WHERE c.reltuples > 0), 0)::bigint
FROM pg_partition_tree('cn_relay.events') t JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf;

-- The next $2 events after the id $1. Those that become no documents are among them, without their text: so the work of a
-- page is bounded, and the last id tells where to go on.
-- name: read_events
SELECT e.event_id, e.pubkey, e.kind, e.created_at, e.ingested_at, e.topics,
  CASE WHEN k.wanted THEN e.tags::text END, CASE WHEN k.wanted THEN e.content END, k.wanted
FROM cn_relay.events e CROSS JOIN LATERAL (
  SELECT e.kind = ANY ($3::integer[]) AND NOT e.non_public AND e.deleted_at IS NULL AND e.superseded_at IS NULL
    AND (e.expires_at IS NULL OR e.expires_at > now()) AS wanted) k
WHERE e.event_id > $1 ORDER BY e.event_id LIMIT $2;

-- name: load_documents
INSERT INTO cn_search.post_search_documents_next (event_id, pubkey, kind, created_at, ingested_at, topics, tokens, title,
                                                  summary, tags)
SELECT k.event_id, k.pubkey, k.kind, k.created_at, k.ingested_at, string_to_array(k.topics, E'\x1f'), k.tokens, k.title,
  k.summary, string_to_array(k.tags, ',')::bigint[]
FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::timestamptz[], $6::text[], $7::tsvector[], $8::text[],
            $9::text[], $10::text[])
  AS k (event_id, pubkey, kind, created_at, ingested_at, topics, tokens, title, summary, tags);

-- name: index_rebuilt
SELECT cn_search.create_indexes('_next');

-- name: swap_rebuilt
SELECT cn_search.swap_rebuilt();
