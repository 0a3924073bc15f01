-- Reading all events in effect, for an export.

-- The keys of those that came after $1, in the order in which they came. Read to its end at once (Export), so that the
-- transaction is short; the server sorts these narrow rows and not the events.
-- name: open_export
DECLARE export_keys NO SCROLL CURSOR FOR
SELECT e.ingested_seq, e.event_id, e.ingested_at FROM cn_relay.effective_events e
WHERE e.ingested_seq > $1 ORDER BY e.ingested_seq;

-- name: fetch_export
FETCH 20000 FROM export_keys;

-- Those of a page that are in effect by now, in its order.
-- name: exported_events
SELECT e.* FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY AS k (event_id, ingested_at, place)
  CROSS JOIN LATERAL (
    SELECT e.event_id, e.pubkey, e.created_at, e.kind, e.tags::text, e.content, e.sig, e.raw, e.ingested_seq,
      extract(epoch FROM e.expires_at)::bigint AS expires_at, e.non_public, e.topics
    FROM cn_relay.events e
    WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.deleted_at IS NULL AND e.superseded_at IS NULL
      AND (e.expires_at IS NULL OR e.expires_at > now()) LIMIT 1) e
ORDER BY k.place;
