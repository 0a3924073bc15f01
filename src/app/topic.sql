-- `todoke topic`.

-- name: list_topics
SELECT topic_id, enabled, pinned, ref_count, ingest_policy::text, name FROM cn_relay.node_subscriptions
ORDER BY enabled DESC, topic_id LIMIT $1;

-- name: show_topic
SELECT s.topic_id, s.enabled, s.pinned, s.ref_count, s.ingest_policy::text,
  to_char(s.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  to_char(s.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), s.name
FROM cn_relay.node_subscriptions s WHERE s.topic_id = $1;

-- What the policy of a topic becomes with these changes, and what is wrong with it.
-- name: merged_policy
SELECT p.policy::text, cn_relay.ingest_policy_problem(p.policy)
FROM (SELECT jsonb_strip_nulls(s.ingest_policy || $2::text::jsonb) AS policy FROM cn_relay.node_subscriptions s
      WHERE s.topic_id = $1) p;

-- name: change_policy
UPDATE cn_relay.node_subscriptions SET ingest_policy = jsonb_strip_nulls(ingest_policy || $2::text::jsonb)
WHERE topic_id = $1;

-- The newest event that is in effect, and how many there are up to $2.
-- name: topic_events
SELECT count(*), max(created_at) FROM (
  SELECT created_at FROM cn_relay.topic_links
  WHERE topic_no = (SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = $1) ORDER BY created_at DESC LIMIT $2) newest;

-- How far behind the slowest mandatory consumer is, and whether the topic $1 is enabled already.
-- name: mandatory_backlog
SELECT coalesce(max(b.rows), 0)::bigint AS rows,
  EXISTS (SELECT FROM cn_relay.node_subscriptions s WHERE s.topic_id = $1 AND s.enabled) AS is_enabled
FROM cn_relay.consumer_offsets c JOIN cn_relay.backlogs() b USING (consumer) WHERE c.mandatory;

-- What it holds by the counters, events that lost their effect included, and what it may hold.
-- name: topic_usage
SELECT coalesce(sum(u.events), 0)::bigint AS events, coalesce(sum(u.bytes), 0)::bigint AS bytes,
  max((s.ingest_policy ->> 'max_events')::bigint) AS events_max, max((s.ingest_policy ->> 'max_bytes')::bigint) AS bytes_max
FROM (VALUES ($1::text COLLATE "C")) AS t (topic_id)
LEFT JOIN cn_relay.topic_usage u USING (topic_id) LEFT JOIN cn_relay.node_subscriptions s USING (topic_id);
