-- What the database holds (capacity.hpp). No statement here counts events.

-- The rows of the topic '' count each event once.
-- name: database_use
SELECT pg_database_size(current_database()) AS size, coalesce(sum(u.events), 0)::bigint AS events,
  coalesce(sum(u.bytes), 0)::bigint AS bytes
FROM cn_relay.topic_usage u WHERE u.topic_id = '';

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
