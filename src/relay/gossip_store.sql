-- What gossip reads of the store beside REQs (gossip_store.hpp).

-- Events in effect that clients and the node itself have brought since $1, oldest first. Looks at the last $2 rows of the log:
-- its key gives them, and nothing else is ordered by the time of the commit.
-- name: sent_since
SELECT e.* FROM (
    SELECT o.event_id, o.ingested_at, min(o.seq) AS seq
    FROM (SELECT * FROM cn_relay.events_outbox ORDER BY seq DESC LIMIT $2) o
    WHERE o.op = 'upsert' AND o.ingested_at >= $1 GROUP BY o.event_id, o.ingested_at) k
  CROSS JOIN LATERAL (
    SELECT e.event_id, e.pubkey, e.created_at, e.kind, e.tags::text, e.content, e.sig, e.raw, e.ingested_seq,
      extract(epoch FROM e.expires_at)::bigint AS expires_at, e.non_public, e.topics
    FROM cn_relay.events e
    WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.source IN ('ws', 'api', 'node')
      AND e.deleted_at IS NULL AND e.superseded_at IS NULL
      AND (e.expires_at IS NULL OR e.expires_at > now()) LIMIT 1) e
ORDER BY k.seq;
