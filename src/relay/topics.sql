-- Which topics the node takes.

-- name: load_topics
SELECT topic_id, (ingest_policy ->> 'retention_days')::bigint, coalesce(ingest_policy ->> 'priority', 'normal')
FROM cn_relay.node_subscriptions WHERE enabled ORDER BY created_at, topic_id LIMIT $1;
