-- `todoke stats`. Sizes come from the catalog, events, topics and growth from the counters of cn_relay.topic_usage; what
-- nobody counts, the kinds, comes from a sample of blocks.

-- Every table with its partitions, indexes and TOAST; rows as the last ANALYZE or VACUUM counted them.
-- name: table_sizes
SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes,
  sum(greatest(c.reltuples, 0))::bigint AS rows
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('cn_relay', 'cn_search', 'orders', 'cn_admin', 'todoke') AND c.relkind = 'r'
GROUP BY 1 ORDER BY bytes DESC, name;

-- name: partition_sizes
SELECT c.oid::regclass::text AS name, pg_total_relation_size(c.oid) AS bytes, greatest(c.reltuples, 0)::bigint AS rows,
  pg_get_expr(c.relpartbound, c.oid) AS holds
FROM pg_class c
WHERE c.relkind = 'r' AND c.relispartition AND c.relnamespace = 'cn_relay'::regnamespace
ORDER BY pg_partition_root(c.oid)::regclass::text, name LIMIT $1;

-- The blocks of the events themselves, and what takes room because of events.
-- name: event_sizes
SELECT
  (SELECT coalesce(sum(pg_relation_size(t.relid)) / current_setting('block_size')::bigint, 0)::bigint
   FROM pg_partition_tree('cn_relay.events') t WHERE t.isleaf) AS blocks,
  (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname IN ('cn_relay', 'cn_search') AND c.relkind = 'r') AS event_bytes;

-- What was stored since the beginning of last week (or since the database was made) and is still there, from the weekly
-- counters; and all that the partition without weeks holds.
-- name: growth
SELECT s.since, extract(epoch FROM now() - s.since)::double precision AS seconds,
  coalesce(sum(u.events) FILTER (WHERE isfinite(u.week)), 0)::bigint AS events,
  coalesce(sum(u.bytes) FILTER (WHERE isfinite(u.week)), 0)::bigint AS bytes,
  coalesce(sum(u.events) FILTER (WHERE NOT isfinite(u.week)), 0)::bigint AS kept_events,
  coalesce(sum(u.bytes) FILTER (WHERE NOT isfinite(u.week)), 0)::bigint AS kept_bytes
FROM (SELECT date_trunc('week', now(), 'UTC') - interval '7 days' AS week,
        greatest(date_trunc('week', now(), 'UTC') - interval '7 days',
                 (SELECT min(m.applied_at) FROM todoke.schema_migrations m)) AS since) s
LEFT JOIN cn_relay.topic_usage u ON u.topic_id = '' AND (u.week >= s.week OR NOT isfinite(u.week))
GROUP BY s.since;

-- The topics that hold most, by the counters; an event of several topics counts in each.
-- name: largest_topics
SELECT u.topic_id, s.name, sum(u.events)::bigint AS events, sum(u.bytes)::bigint AS bytes
FROM cn_relay.topic_usage u LEFT JOIN cn_relay.node_subscriptions s ON s.topic_id = u.topic_id
WHERE u.topic_id <> '' GROUP BY u.topic_id, s.name HAVING sum(u.events) > 0 ORDER BY bytes DESC, u.topic_id LIMIT $1;

-- A row for each kind: of $1 percent of the blocks, all versions and deleted events included. `kept`: in the partition without
-- weeks; `kept_since`: of those, stored since $2. Reads $1 percent of the blocks: 20,000 of them (stats) take a quarter of a
-- second when they are cached.
-- name: sampled_kinds
SELECT e.kind, count(*) AS events, sum(cn_relay.event_bytes(e.content, e.tags::text, e.raw))::bigint AS bytes,
  count(*) FILTER (WHERE e.lifetime = 'k') AS kept,
  count(*) FILTER (WHERE e.lifetime = 'k' AND e.ingested_at >= $2) AS kept_since
FROM cn_relay.events e TABLESAMPLE SYSTEM ($1::double precision::real) GROUP BY e.kind ORDER BY events DESC, e.kind;
