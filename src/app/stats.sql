-- `todoke stats`. Sizes come from the catalog; what events are about comes from a sample of their blocks.

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

-- The whole database, the blocks of the events themselves, and what takes room because of events.
-- name: database_size
SELECT pg_database_size(current_database()) AS bytes,
  (SELECT coalesce(sum(pg_relation_size(t.relid)) / current_setting('block_size')::bigint, 0)::bigint
   FROM pg_partition_tree('cn_relay.events') t WHERE t.isleaf) AS blocks,
  (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname IN ('cn_relay', 'cn_search') AND c.relkind = 'r') AS event_bytes;

-- A row for each kind: of $1 percent of the blocks, all versions and deleted events included. `weight` is what the bytes
-- of the tables are split by: the text, and 600 for the rest of a row with its index entries. Reads $1 percent of the
-- blocks: 20,000 of them (stats) take a quarter of a second when they are cached.
-- name: sampled_kinds
SELECT e.kind, count(*) AS events, sum(600 + octet_length(e.content) + octet_length(e.tags::text))::bigint AS weight,
  count(*) FILTER (WHERE e.ingested_at > now() - make_interval(days => $2)) AS recent,
  extract(epoch FROM now() - min(e.ingested_at))::bigint AS age
FROM cn_relay.events e TABLESAMPLE SYSTEM ($1::double precision::real) GROUP BY e.kind ORDER BY events DESC, e.kind;

-- The same for each topic; an event counts in each of its topics.
-- name: sampled_topics
SELECT t.topic_id, s.name, count(*) AS events,
  sum(600 + octet_length(e.content) + octet_length(e.tags::text))::bigint AS weight
FROM cn_relay.events e TABLESAMPLE SYSTEM ($1::double precision::real) CROSS JOIN LATERAL unnest(e.topics) AS t (topic_id)
  LEFT JOIN cn_relay.node_subscriptions s ON s.topic_id = t.topic_id
GROUP BY t.topic_id, s.name ORDER BY events DESC, t.topic_id LIMIT $2;
