-- Events that name a topic in a `t` tag and are not linked to it.

-- Leaves a gap in the log, so that no row of a link stands where the next topic of an event that was stored just before would:
-- so relays know the one from the other.
-- name: skip_seq
SELECT nextval('cn_relay.events_outbox_seq');

-- Links the next $4 events at most that name the topic $1, older than $2 (at the same second after the id $3). After lock_log. A
-- `t` tag that is a link has no row in event_tags.
-- name: link_events
WITH topic AS MATERIALIZED (
  SELECT cn_relay.tag_value_key($1::text) AS value,
    (n.ingest_policy ->> 'max_events')::bigint AS events_max, (n.ingest_policy ->> 'max_bytes')::bigint AS bytes_max,
    u.events, u.bytes
  FROM cn_relay.node_subscriptions n CROSS JOIN LATERAL (
    SELECT coalesce(sum(u.events), 0)::bigint AS events, coalesce(sum(u.bytes), 0)::bigint AS bytes
    FROM cn_relay.topic_usage u WHERE u.topic_id = $1) u
  WHERE n.topic_id = $1 AND n.enabled AND coalesce((n.ingest_policy ->> 'allow_backfill')::boolean, true)
    AND NOT cn_user.is_topic_blocked($1)
), k AS MATERIALIZED (
  SELECT g.* FROM topic CROSS JOIN LATERAL (
    SELECT g.created_at, g.event_id, g.ingested_at, g.lifetime, g.value FROM cn_relay.event_tags g
    WHERE g.name = 't' AND g.value = topic.value AND g.created_at <= $2 AND (g.created_at < $2 OR g.event_id > $3)
    ORDER BY g.created_at DESC, g.event_id LIMIT $4) g
), found AS MATERIALIZED (
  SELECT e.*, row_number() OVER w AS n, sum(e.size) OVER w AS bytes_so_far
  FROM k CROSS JOIN LATERAL (
    SELECT e.event_id, e.pubkey, e.kind, e.created_at, e.ingested_at, e.ingested_seq, e.expires_at, e.non_public, e.lifetime,
      e.effective_key, e.topics, e.tags, cn_relay.event_bytes(e.content, e.tags::text, e.raw) AS size
    FROM cn_relay.events e
    WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.lifetime = k.lifetime AND e.kind <> 62
      AND e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL
      AND (e.expires_at IS NULL OR e.expires_at > now()) LIMIT 1) e
  WINDOW w AS (ORDER BY e.created_at DESC, e.event_id ROWS UNBOUNDED PRECEDING)
), hit AS MATERIALIZED (
  SELECT f.* FROM found f CROSS JOIN topic t
  WHERE (t.events_max IS NULL OR t.events + f.n <= t.events_max)
    AND (t.bytes_max IS NULL OR t.bytes + f.bytes_so_far <= t.bytes_max)
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (SELECT * FROM hit ORDER BY n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key)
  SELECT seq, 'upsert', event_id, $1, kind, created_at, ingested_at, effective_key FROM r
), linked AS (
  INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, ingested_at, ingested_seq,
                                    expires_at, non_public, lifetime)
  SELECT cn_relay.topic_no($1), decode(event_id, 'hex'), cn_relay.short_id(event_id), cn_relay.short_id(pubkey), kind, created_at,
    ingested_at, ingested_seq, expires_at, non_public, lifetime FROM r
), untagged AS (
  DELETE FROM cn_relay.event_tags g USING hit, topic
  WHERE g.name = 't' AND g.value = topic.value AND g.created_at = hit.created_at AND g.event_id = hit.event_id
    AND g.ingested_at = hit.ingested_at AND g.lifetime = hit.lifetime
), named AS (
  UPDATE cn_relay.events e SET topics = hit.topics || $1::text FROM hit
  WHERE e.event_id = hit.event_id AND e.ingested_at = hit.ingested_at AND e.lifetime = hit.lifetime
    AND NOT $1 = ANY (hit.topics)
), current AS (
  UPDATE cn_relay.current_versions c SET topics = c.topics || $1::text FROM hit
  WHERE c.effective_key = hit.effective_key AND c.event_id = hit.event_id AND NOT $1 = ANY (c.topics)
), counted AS (
  INSERT INTO cn_relay.topic_usage AS u (topic_id, week, events, bytes)
  SELECT $1, CASE lifetime WHEN 'r' THEN cn_relay.week_of(ingested_at) ELSE '-infinity' END AS week, count(*), sum(size)
  FROM hit WHERE NOT $1 = ANY (topics) GROUP BY 2 ORDER BY 2
  ON CONFLICT (topic_id, week) DO UPDATE SET events = u.events + excluded.events, bytes = u.bytes + excluded.bytes
)
SELECT (SELECT count(*) FROM k) AS seen, count(r.seq) AS linked, coalesce(max(r.seq), 0) AS head,
  (SELECT k.event_id FROM k ORDER BY k.created_at, k.event_id DESC LIMIT 1) AS last_id,
  (SELECT k.created_at FROM k ORDER BY k.created_at, k.event_id DESC LIMIT 1) AS last_time,
  count(cn_relay.note_moved(r.pubkey, r.kind, r.created_at, r.tags, r.topics) IS NULL OR NULL) AS noted
FROM r;

-- name: mark_ingested
SELECT cn_user.mark_ingested($1);
