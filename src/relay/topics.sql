-- Which topics the node takes.

-- name: load_topics
SELECT topic_id, (ingest_policy ->> 'retention_days')::bigint, coalesce(ingest_policy ->> 'priority', 'normal'),
  coalesce((ingest_policy ->> 'dedupe_days')::integer, 0), coalesce((ingest_policy ->> 'tombstone_days')::integer, 0)
FROM cn_relay.node_subscriptions WHERE enabled ORDER BY created_at, topic_id LIMIT $1;
