-- Which topics the node takes.

-- name: load_topics
SELECT topic_id, (ingest_policy ->> 'retention_days')::bigint, coalesce(ingest_policy ->> 'priority', 'normal'),
  coalesce((ingest_policy ->> 'dedupe_days')::integer, 0), coalesce((ingest_policy ->> 'tombstone_days')::integer, 0),
  coalesce((ingest_policy ->> 'allow_backfill')::boolean, true),
  coalesce((ingest_policy ->> 'max_delay_seconds')::bigint, 0),
  coalesce((ingest_policy ->> 'max_events')::bigint, 0), coalesce((ingest_policy ->> 'max_bytes')::bigint, 0),
  coalesce(ingest_policy ->> 'when_full', 'refuse') = 'drop_oldest'
FROM cn_relay.node_subscriptions WHERE enabled ORDER BY created_at, topic_id LIMIT $1;

-- Those of the ids that were ever stored.
-- name: known_ids
SELECT event_id FROM cn_relay.event_dedupe WHERE event_id = ANY ($1::text[]);

-- What some topics hold.
-- name: topic_use
SELECT topic_id, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM cn_relay.topic_usage WHERE topic_id = ANY ($1::text[]) GROUP BY topic_id;
