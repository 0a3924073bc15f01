-- Which topics the node takes.

-- name: load_topics
SELECT topic_id, least((ingest_policy ->> 'retention_days')::bigint, 1000000)::int, coalesce(ingest_policy ->> 'priority', 'normal')
FROM cn_relay.node_subscriptions WHERE enabled ORDER BY created_at, topic_id LIMIT $1;
