-- What the database holds (capacity.hpp). No statement here counts events.

-- The rows of the topic '' count each event once; the week -infinity are the kept ones. An id takes 250 bytes, and that of a
-- stored event is among that event's. How many ids there are is what vacuum has last seen, on as many pages as there are now; a
-- page holds 65 at most.
-- name: database_use
SELECT pg_database_size(current_database()) AS size, u.events, u.bytes, u.kept,
  (250 * greatest(d.ids - u.events, 0) + o.bytes)::bigint AS marks
FROM (
  SELECT coalesce(sum(u.events), 0)::bigint AS events, coalesce(sum(u.bytes), 0)::bigint AS bytes,
    coalesce(sum(u.bytes) FILTER (WHERE u.week = '-infinity'), 0)::bigint AS kept
  FROM cn_relay.topic_usage u WHERE u.topic_id = '') u
CROSS JOIN (
  SELECT p.pages * CASE WHEN c.reltuples >= 0 AND c.relpages > 0 THEN c.reltuples / c.relpages ELSE 65 END AS ids
  FROM pg_class c
  CROSS JOIN LATERAL (SELECT pg_relation_size(c.oid) / current_setting('block_size')::integer AS pages) p
  WHERE c.oid = 'cn_relay.event_dedupe'::regclass) d
CROSS JOIN (
  SELECT sum(pg_total_relation_size(t.name::regclass)) AS bytes
  FROM (VALUES ('cn_relay.deletion_tombstones'), ('cn_relay.vanish_requests'), ('cn_relay.replaceable_current'),
               ('cn_relay.addressable_current')) AS t (name)) o;

-- Topics that let their oldest events go and hold more than they may, up to $1.
-- name: topics_over
SELECT t.topic_id, t.events_max, t.bytes_max, u.events, u.bytes
FROM (
  SELECT s.topic_id, coalesce((s.ingest_policy ->> 'max_events')::bigint, 0) AS events_max,
    coalesce((s.ingest_policy ->> 'max_bytes')::bigint, 0) AS bytes_max
  FROM cn_relay.node_subscriptions s WHERE s.ingest_policy ->> 'when_full' = 'drop_oldest') t
CROSS JOIN LATERAL (
  SELECT sum(u.events)::bigint AS events, sum(u.bytes)::bigint AS bytes
  FROM cn_relay.topic_usage u WHERE u.topic_id = t.topic_id) u
WHERE (t.events_max > 0 AND u.events > t.events_max) OR (t.bytes_max > 0 AND u.bytes > t.bytes_max)
ORDER BY t.topic_id LIMIT $1;
