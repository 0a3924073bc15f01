-- Whether the node takes a topic. Each gives how the topic stands then, or no row where the node does not know it.

-- name: count_other_topics
SELECT count(*) FROM cn_relay.node_subscriptions WHERE enabled AND topic_id <> $1;

-- name: enable_topic
INSERT INTO cn_relay.node_subscriptions AS s (topic_id, enabled, pinned, ingest_policy, name)
VALUES ($1, true, true, coalesce($2::text::jsonb, '{}'), $3)
ON CONFLICT (topic_id) DO UPDATE SET enabled = true, pinned = true, name = coalesce($3, s.name),
  ingest_policy = coalesce($2::text::jsonb, s.ingest_policy)
RETURNING s.enabled, s.pinned, s.ref_count, s.ingest_policy::text, s.name;

-- With subscribers it has to be pinned, or the next change of their number would enable it again.
-- name: disable_topic
UPDATE cn_relay.node_subscriptions s SET enabled = false, pinned = ref_count > 0 WHERE s.topic_id = $1
RETURNING s.enabled, s.pinned, s.ref_count, s.ingest_policy::text, s.name;

-- name: unpin_topic
UPDATE cn_relay.node_subscriptions s SET pinned = false, enabled = ref_count > 0 WHERE s.topic_id = $1
RETURNING s.enabled, s.pinned, s.ref_count, s.ingest_policy::text, s.name;
