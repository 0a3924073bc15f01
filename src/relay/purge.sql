-- Purging stored events (purge.hpp). Times come as parameters, so that whoever calls has the clock. Intervals are hours: a day
-- of another length, where the clocks change, moves nothing.

-- One process at a time does this; the lock belongs to the session. $1: how many milliseconds to wait for it.
-- name: take_purge_lock
SELECT cn_relay.take_purge_lock($1);

-- name: purge_unlock
SELECT pg_advisory_unlock(cn_names.lock_purge());

-- name: database_clock
SELECT clock_timestamp();

-- name: walk_place
SELECT after_time, after_text, after_number, finished_at FROM cn_relay.purge_walks WHERE walk = $1;

-- name: put_walk
INSERT INTO cn_relay.purge_walks AS w (walk, after_time, after_text, after_number, finished_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (walk) DO UPDATE SET after_time = excluded.after_time, after_text = excluded.after_text,
  after_number = excluded.after_number, finished_at = coalesce(excluded.finished_at, w.finished_at);

-- The weeks of regular events that were over $2 days before $1, the oldest first, with their size on disk.
-- name: old_weeks
SELECT w.week, w.bytes FROM (
  SELECT to_date(right(c.relname, 10), 'YYYY_MM_DD')::timestamp AT TIME ZONE 'UTC' AS week,
    (SELECT sum(pg_total_relation_size(to_regclass('cn_relay.' || p.parent || right(c.relname, 11))))
     FROM (VALUES ('events'), ('topic_links'), ('event_tags')) AS p (parent))::bigint AS bytes
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'cn_relay.events_regular'::regclass) w
WHERE w.week + interval '168 hours' <= $1::timestamptz - make_interval(hours => 24 * $2::integer)
ORDER BY w.week;

-- Regular events of the week $1 in effect that at $2 have to stay longer, up to $4: a topic keeps them longer than $3 days, the
-- period of the node, and that is not over. The newest of each topic first.
-- name: events_to_keep
SELECT array_agg(x.event_id), array_agg(x.ingested_at) FROM (
  SELECT l.event_id, l.ingested_at FROM (
    SELECT n.topic_no, make_interval(hours => 24 * (s.ingest_policy ->> 'retention_days')::integer) AS period
    FROM cn_relay.node_subscriptions s JOIN cn_relay.topic_numbers n USING (topic_id) WHERE (s.ingest_policy ->> 'retention_days')::integer > $3) s
  CROSS JOIN LATERAL (
    SELECT encode(l.event_id, 'hex') AS event_id, l.ingested_at FROM cn_relay.topic_links l
    WHERE l.topic_no = s.topic_no AND l.lifetime = 'r' AND l.ingested_at >= $1
      AND l.ingested_at < $1 + interval '168 hours' AND l.ingested_at > $2::timestamptz - s.period
    ORDER BY l.ingested_seq DESC LIMIT $4) l
  WHERE $1 + interval '168 hours' > $2::timestamptz - s.period LIMIT $4) x;

-- name: keep_events
SELECT cn_relay.keep_events($1, $2);

-- name: detach_week
SELECT cn_relay.detach_week($1);

-- name: drop_detached
SELECT cn_relay.drop_detached();

-- name: purge_events
SELECT events, bytes FROM cn_relay.purge_events($1, $2, $3);

-- The first topic whose own period is shorter than $1 days, from $2 on; with $3 that one, too.
-- name: next_short_topic
SELECT s.topic_id, (s.ingest_policy ->> 'retention_days')::integer AS days FROM cn_relay.node_subscriptions s
WHERE (s.ingest_policy ->> 'retention_days')::integer < $1 AND s.topic_id >= $2::text COLLATE "C"
  AND ($3 OR s.topic_id <> $2::text)
ORDER BY s.topic_id LIMIT 1;

-- The shortest periods of events that are kept, by their age and by when they lost their effect: $1 to $3 are those of the node
-- for regular events, versions that lost their effect and deletion requests.
-- name: shortest_periods
SELECT cn_relay.shortest_days(ARRAY['retention_days', 'deletion_days'], least($1::integer, $3::integer)),
  cn_relay.shortest_days(ARRAY['superseded_days'], $2);

-- All of these pages: the next $n of what is walked through, of which those that are due come back, and where the page ended.

-- Links of the topic $1 after the seq $2, up to $4 of events that at $3 are older than its period of $6 days. Due are those all of
-- whose topics have a shorter period than the node's of $5 days, and are over it; the others go with their week.
-- name: page_of_topic
WITH page AS MATERIALIZED (
  SELECT l.ingested_seq, encode(l.event_id, 'hex') AS event_id, l.ingested_at, l.lifetime FROM cn_relay.topic_links l
  WHERE l.topic_no = (SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = $1) AND l.ingested_seq > $2 AND l.lifetime = 'r'
    AND l.ingested_at <= $3::timestamptz - make_interval(hours => 24 * $6::integer)
  ORDER BY l.ingested_seq LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p CROSS JOIN LATERAL (
    SELECT e.topics FROM cn_relay.events e
    WHERE e.event_id = p.event_id AND e.ingested_at = p.ingested_at AND e.lifetime = p.lifetime LIMIT 1) e
    CROSS JOIN LATERAL (SELECT cn_relay.topic_days(e.topics, 'retention_days', $5) AS days) t
  WHERE t.days < $5 AND p.ingested_at + make_interval(hours => 24 * t.days) <= $3
)
SELECT (SELECT count(*) FROM page), (SELECT max(ingested_seq) FROM page), array_agg(event_id), array_agg(ingested_at),
  array_agg(lifetime::text) FROM due;

-- The oldest events of the topic $1 that no other topic has, accepted before $2, up to $5 of the $4 links after the seq $3.
-- name: page_of_topic_alone
WITH page AS MATERIALIZED (
  SELECT l.ingested_seq, encode(l.event_id, 'hex') AS event_id, l.ingested_at, l.lifetime FROM cn_relay.topic_links l
  WHERE l.topic_no = (SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = $1) AND l.ingested_seq > $3 AND l.ingested_at < $2
  ORDER BY l.ingested_seq LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p CROSS JOIN LATERAL (
    SELECT e.topics, e.kind, e.effective_key FROM cn_relay.events e
    WHERE e.event_id = p.event_id AND e.ingested_at = p.ingested_at AND e.lifetime = p.lifetime LIMIT 1) e
  WHERE e.topics = ARRAY[$1] AND e.kind NOT IN (5, 62) AND e.effective_key IS NULL
  ORDER BY p.ingested_seq LIMIT $5
)
SELECT (SELECT count(*) FROM page),
  CASE WHEN count(*) = $5 THEN max(ingested_seq) ELSE (SELECT max(ingested_seq) FROM page) END,
  array_agg(event_id), array_agg(ingested_at), array_agg(lifetime::text) FROM due;

-- The next $4 of all events that lost their effect after the time $2 and the id $3, of which up to $5 of the topic $1. Deletion
-- requests stay.
-- name: page_of_topic_lost
WITH page AS MATERIALIZED (
  SELECT least(e.deleted_at, e.superseded_at, e.expired_at) AS lost_at, e.event_id, e.ingested_at, e.lifetime, e.kind, e.topics
  FROM cn_relay.events e
  WHERE (e.deleted_at IS NOT NULL OR e.superseded_at IS NOT NULL OR e.expired_at IS NOT NULL)
    AND (least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id) > ($2, $3)
  ORDER BY least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p WHERE $1 = ANY (p.topics) AND p.kind NOT IN (5, 62) ORDER BY p.lost_at, p.event_id LIMIT $5
), last AS (
  SELECT lost_at, event_id FROM page WHERE (SELECT count(*) FROM due) < $5
  UNION ALL SELECT lost_at, event_id FROM due
  ORDER BY lost_at DESC, event_id DESC LIMIT 1
)
SELECT (SELECT count(*) FROM page), (SELECT lost_at FROM last), (SELECT event_id FROM last), array_agg(event_id),
  array_agg(ingested_at), array_agg(lifetime::text) FROM due;

-- $1, $2 where the last page ended, $3 the time, $4 how many rows, $5 to $7 the periods of regular events, versions that lost
-- their effect, deletion requests, $8 the shortest period that any topic has for these: nothing younger is due.
-- name: page_of_kept
WITH page AS MATERIALIZED (
  SELECT e.ingested_at, e.event_id, e.effective_key, e.kind, e.topics FROM cn_relay.events_kept e
  WHERE e.effective_key IS NULL AND (e.ingested_at, e.event_id) > ($1, $2)
    AND e.ingested_at <= $3::timestamptz - make_interval(hours => 24 * $8::integer)
  ORDER BY e.ingested_at, e.event_id LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p
  WHERE cn_relay.event_due(p.effective_key, p.kind, p.topics, p.ingested_at, NULL, $5, $6, $7) <= $3
), last AS (
  SELECT ingested_at, event_id FROM page ORDER BY ingested_at DESC, event_id DESC LIMIT 1
)
SELECT (SELECT count(*) FROM page), (SELECT ingested_at FROM last), (SELECT event_id FROM last), array_agg(event_id),
  array_agg(ingested_at), array_agg('k'::text) FROM due;

-- name: page_of_lost_versions
WITH page AS MATERIALIZED (
  SELECT least(e.deleted_at, e.superseded_at, e.expired_at) AS lost_at, e.ingested_at, e.event_id, e.effective_key, e.kind,
    e.topics
  FROM cn_relay.events_kept e
  WHERE (e.deleted_at IS NOT NULL OR e.superseded_at IS NOT NULL OR e.expired_at IS NOT NULL)
    AND (least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id) > ($1, $2)
    AND least(e.deleted_at, e.superseded_at, e.expired_at) <= $3::timestamptz - make_interval(hours => 24 * $8::integer)
  ORDER BY least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p
  WHERE p.effective_key IS NOT NULL
    AND cn_relay.event_due(p.effective_key, p.kind, p.topics, p.ingested_at, p.lost_at, $5, $6, $7) <= $3
), last AS (
  SELECT lost_at, event_id FROM page ORDER BY lost_at DESC, event_id DESC LIMIT 1
)
SELECT (SELECT count(*) FROM page), (SELECT lost_at FROM last), (SELECT event_id FROM last), array_agg(event_id),
  array_agg(ingested_at), array_agg('k'::text) FROM due;

-- Regular events that lost their effect have no links by which page_of_topic could find them. They count from when they were
-- accepted, so one that lost it a moment ago may be due: $8 says nothing here.
-- name: page_of_lost_regular
WITH page AS MATERIALIZED (
  SELECT least(e.deleted_at, e.superseded_at, e.expired_at) AS lost_at, e.ingested_at, e.event_id, e.effective_key, e.kind,
    e.topics
  FROM cn_relay.events_regular e
  WHERE (e.deleted_at IS NOT NULL OR e.superseded_at IS NOT NULL OR e.expired_at IS NOT NULL)
    AND (least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id) > ($1, $2)
    AND least(e.deleted_at, e.superseded_at, e.expired_at) < $3
  ORDER BY least(e.deleted_at, e.superseded_at, e.expired_at), e.event_id LIMIT $4
), due AS MATERIALIZED (
  SELECT p.* FROM page p
  WHERE $8::integer IS NOT NULL
    AND cn_relay.event_due(p.effective_key, p.kind, p.topics, p.ingested_at, NULL, $5, $6, $7) <= $3
    AND cn_relay.topic_days(p.topics, 'retention_days', $5) < $5
), last AS (
  SELECT lost_at, event_id FROM page ORDER BY lost_at DESC, event_id DESC LIMIT 1
)
SELECT (SELECT count(*) FROM page), (SELECT lost_at FROM last), (SELECT event_id FROM last), array_agg(event_id),
  array_agg(ingested_at), array_agg('r'::text) FROM due;

-- How many blocks a walk has to go through.
-- name: blocks
SELECT (pg_relation_size('cn_relay.event_dedupe') / current_setting('block_size')::integer)::bigint,
  (pg_relation_size('cn_relay.deletion_tombstones') / current_setting('block_size')::integer)::bigint;

-- In the order of blocks, because no index knows last_seen_at: keeping one would cost every event more than this. $1 and $2: the
-- blocks, $3 the time, $4 retention.dedupe_days, $5 retention.regular_days. Never shorter than the longest period of
-- regular events, whatever the row says, and never while the event is stored: a probe of an index for each row that is old enough.
-- name: purge_dedupe
WITH old AS MATERIALIZED (
  SELECT d.ctid FROM cn_relay.event_dedupe d
  WHERE d.ctid >= format('(%s,0)', $1::bigint)::tid AND d.ctid < format('(%s,0)', $2::bigint)::tid
    AND d.last_seen_at + make_interval(hours => 24 * greatest(coalesce(d.keep_days, $4), (SELECT cn_relay.longest_days($5)))) <= $3::timestamptz
    AND (SELECT true FROM cn_relay.events e WHERE e.event_id = d.event_id LIMIT 1) IS NULL
  FOR UPDATE OF d SKIP LOCKED)
DELETE FROM cn_relay.event_dedupe d WHERE d.ctid = ANY (ARRAY(SELECT old.ctid FROM old));

-- name: purge_tombstones
WITH old AS MATERIALIZED (
  SELECT t.ctid FROM cn_relay.deletion_tombstones t
  WHERE t.ctid >= format('(%s,0)', $1::bigint)::tid AND t.ctid < format('(%s,0)', $2::bigint)::tid
    AND t.requested_at + make_interval(hours => 24 * greatest(coalesce(t.keep_days, $4), (SELECT cn_relay.longest_days($5)))) <= $3::timestamptz
  FOR UPDATE OF t SKIP LOCKED)
DELETE FROM cn_relay.deletion_tombstones t WHERE t.ctid = ANY (ARRAY(SELECT old.ctid FROM old));

-- name: recount_usage
SELECT cn_relay.recount_usage();

-- name: topic_usage
SELECT coalesce(sum(events), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM cn_relay.topic_usage WHERE topic_id = $1;

-- ---------------------------------------------------------------------------------------------- plan

-- What a run at $1 would do to the weeks that are over, with the periods $2 to $4: a row for each.
-- name: plan_weeks
SELECT 'cn_relay.' || cn_relay.week_table('events', w.week) AS what,
  coalesce((SELECT sum(u.events) FROM cn_relay.topic_usage u WHERE u.topic_id = '' AND u.week = w.week), 0)::bigint - k.events
    AS dropped,
  coalesce((SELECT sum(u.bytes) FROM cn_relay.topic_usage u WHERE u.topic_id = '' AND u.week = w.week), 0)::bigint - k.bytes
    AS bytes,
  k.events AS moved
FROM (
  SELECT to_date(right(c.relname, 10), 'YYYY_MM_DD')::timestamp AT TIME ZONE 'UTC' AS week
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'cn_relay.events_regular'::regclass) w
CROSS JOIN LATERAL (
  SELECT count(*) AS events, coalesce(sum(cn_relay.event_bytes(e.content, e.tags::text, e.raw)), 0)::bigint AS bytes
  FROM cn_relay.events e
  WHERE e.lifetime = 'r' AND e.ingested_at >= w.week AND e.ingested_at < w.week + interval '168 hours'
    AND e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL
    AND cn_relay.event_due(e.effective_key, e.kind, e.topics, e.ingested_at, NULL, $2, $3, $4) > $1) k
WHERE w.week + interval '168 hours' <= $1::timestamptz - make_interval(hours => 24 * $2::integer)
ORDER BY w.week;

-- Rows that would go one by one, by what makes them go.
-- name: plan_rows
WITH due AS MATERIALIZED (
  SELECT CASE WHEN e.effective_key IS NOT NULL THEN 'superseded' WHEN e.kind IN (5, 62) THEN 'deletion requests' ELSE 'regular' END AS what,
    CASE WHEN e.effective_key IS NULL AND e.kind NOT IN (5, 62) THEN coalesce(e.topics[1], '') ELSE '' END AS topic,
    cn_relay.event_bytes(e.content, e.tags::text, e.raw) AS bytes
  FROM cn_relay.events e
  WHERE (e.lifetime = 'k' OR e.ingested_at >= cn_relay.week_of($1::timestamptz - make_interval(hours => 24 * $2::integer)))
    AND (e.lifetime = 'k' OR (EXISTS (SELECT FROM cn_relay.node_subscriptions s
                                      WHERE (s.ingest_policy ->> 'retention_days')::integer < $2)
                              AND cn_relay.topic_days(e.topics, 'retention_days', $2) < $2))
    AND cn_relay.event_due(e.effective_key, e.kind, e.topics, e.ingested_at,
                           least(e.deleted_at, e.superseded_at, e.expired_at), $2, $3, $4) <= $1
)
SELECT what, topic, count(*), sum(bytes)::bigint FROM due GROUP BY 1, 2 ORDER BY 1, 2;

-- Dedupe rows and tombstones that would go after those events: $1 the time, $2 to $4 the periods of regular events, lost versions
-- and deletion requests, $5 dedupe_days, $6 tombstone_days. Bytes are estimated by the size of the tables.
-- name: plan_marks
WITH l AS MATERIALIZED (SELECT cn_relay.longest_days($2) AS longest)
SELECT 'dedupe rows' AS what, count(*) AS gone,
  (count(*) * pg_total_relation_size('cn_relay.event_dedupe')
     / greatest((SELECT count(*) FROM cn_relay.event_dedupe), 1))::bigint AS bytes
FROM cn_relay.event_dedupe d, l
WHERE d.last_seen_at + make_interval(hours => 24 * greatest(coalesce(d.keep_days, $5), l.longest)) <= $1::timestamptz
  AND NOT EXISTS (
    SELECT FROM cn_relay.events e WHERE e.event_id = d.event_id
      AND cn_relay.event_due(e.effective_key, e.kind, e.topics, e.ingested_at,
                             least(e.deleted_at, e.superseded_at, e.expired_at), $2, $3, $4) > $1
      AND (e.lifetime = 'k'
           OR e.ingested_at >= cn_relay.week_of($1::timestamptz - make_interval(hours => 24 * $2::integer))
           OR (e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL)))
UNION ALL
SELECT 'tombstones', count(*),
  (count(*) * pg_total_relation_size('cn_relay.deletion_tombstones')
     / greatest((SELECT count(*) FROM cn_relay.deletion_tombstones), 1))::bigint
FROM cn_relay.deletion_tombstones t, l
WHERE t.requested_at + make_interval(hours => 24 * greatest(coalesce(t.keep_days, $6), l.longest)) <= $1::timestamptz;

-- ---------------------------------------------------------------------------------------------- periods

-- What contradicts itself, the worst first: a period of dedupe rows or tombstones that is shorter than one of regular events. $1
-- to $3 are those of the node: regular, tombstones, dedupe. $4 and $5: a topic and the ingest_policy that it is to have; NULL: as
-- they are. Up to $6 of them.
-- name: period_problems
WITH t AS MATERIALIZED (
  SELECT s.topic_id, s.ingest_policy AS policy FROM cn_relay.node_subscriptions s
  WHERE s.topic_id IS DISTINCT FROM $4::text AND s.ingest_policy <> '{}'
  UNION ALL SELECT $4::text, $5::text::jsonb WHERE $4::text IS NOT NULL
), regular (name, days) AS (
  SELECT 'retention.regular_days', $1::integer
  UNION ALL SELECT 'retention_days of ' || t.topic_id, (t.policy ->> 'retention_days')::integer FROM t
  WHERE t.policy ? 'retention_days'
), mark (name, days) AS (
  SELECT 'retention.tombstone_days', $2::integer
  UNION ALL SELECT 'retention.dedupe_days', $3::integer
  UNION ALL SELECT k.key || ' of ' || t.topic_id, (k.value #>> '{}')::integer
  FROM t CROSS JOIN LATERAL jsonb_each(t.policy) k WHERE k.key IN ('tombstone_days', 'dedupe_days')
)
SELECT m.name, m.days, r.name, r.days FROM mark m JOIN regular r ON m.days < r.days
ORDER BY m.days - r.days, m.name, r.name LIMIT $6;
