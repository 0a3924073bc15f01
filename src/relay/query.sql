-- The reading side. A page is a run of candidates, newest first (created_at descending, id ascending), after a
-- cursor; their events are fetched and matched against the filter afterwards. LATERAL makes each page an index scan
-- in order, which ends at its limit.
--
-- In all keys_by_…: $1 the newest created_at, $2 the id after which to go on at that created_at ('' for all),
-- $3 the oldest created_at, $4 how many rows.
--
-- Indexes hold the first 8 bytes of ids (short_id). Whatever shares them is told apart by the whole id: rows of one such number and
-- one second, which are one as a rule, are sorted by it.
--
-- Those by topic, author, kind and time also say kind, non_public and expires_at: with the filter's own conditions that is all
-- that a set of ids needs (read_piece), and it comes from the row that has ingested_at.

-- name: head
SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox;

-- name: keys_by_topic
SELECT l.* FROM cn_relay.topic_numbers n CROSS JOIN LATERAL (
  SELECT l.created_at, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.ingested_at, l.lifetime::text, l.kind, l.non_public, l.expires_at
  FROM cn_relay.topic_links l
  WHERE l.topic_no = n.topic_no AND l.created_at BETWEEN $3 AND $1
    AND (l.created_at < $1 OR (l.short_id, l.event_id) > (cn_relay.short_id($2), decode($2, 'hex')))
    AND ($6::int[] IS NULL OR l.kind = ANY ($6)) AND ($7::text[] IS NULL OR l.short_author = ANY (ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest($7::text[]) AS a (id))))
  ORDER BY l.created_at DESC, l.short_id, l.event_id LIMIT $4) l
WHERE n.topic_id = ANY ($5::text[])
ORDER BY l.created_at DESC, l.event_id LIMIT $4;

-- name: keys_by_topic_kind
SELECT l.* FROM cn_relay.topic_numbers n CROSS JOIN unnest($6::int[]) AS k (kind) CROSS JOIN LATERAL (
  SELECT l.created_at, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.ingested_at, l.lifetime::text, l.kind, l.non_public, l.expires_at
  FROM cn_relay.topic_links l
  WHERE l.topic_no = n.topic_no AND l.kind = k.kind AND l.created_at BETWEEN $3 AND $1
    AND (l.created_at < $1 OR (l.short_id, l.event_id) > (cn_relay.short_id($2), decode($2, 'hex')))
    AND ($7::text[] IS NULL OR l.short_author = ANY (ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest($7::text[]) AS a (id))))
  ORDER BY l.created_at DESC, l.short_id, l.event_id LIMIT $4) l
WHERE n.topic_id = ANY ($5::text[])
ORDER BY l.created_at DESC, l.event_id LIMIT $4;

-- name: keys_by_topic_author
SELECT l.* FROM cn_relay.topic_numbers n CROSS JOIN unnest($7::text[]) AS a (pubkey) CROSS JOIN LATERAL (
  SELECT l.created_at, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.ingested_at, l.lifetime::text, l.kind, l.non_public, l.expires_at
  FROM cn_relay.topic_links l
  WHERE l.topic_no = n.topic_no AND l.short_author = cn_relay.short_id(a.pubkey) AND l.created_at BETWEEN $3 AND $1
    AND (l.created_at < $1 OR (l.short_id, l.event_id) > (cn_relay.short_id($2), decode($2, 'hex')))
    AND ($6::int[] IS NULL OR l.kind = ANY ($6))
  ORDER BY l.created_at DESC, l.short_id, l.event_id LIMIT $4) l
WHERE n.topic_id = ANY ($5::text[])
ORDER BY l.created_at DESC, l.event_id LIMIT $4;

-- name: keys_by_tag
SELECT g.* FROM unnest($6::text[]) AS k (value) CROSS JOIN LATERAL (
  SELECT g.created_at, g.event_id, g.ingested_at, g.lifetime::text FROM cn_relay.event_tags g
  WHERE g.name = $5::text::"char" AND g.value = k.value AND g.created_at BETWEEN $3 AND $1
    AND (g.created_at < $1 OR g.event_id > $2)
  ORDER BY g.created_at DESC, g.event_id LIMIT $4) g
ORDER BY g.created_at DESC, g.event_id LIMIT $4;

-- A `t` tag is a link where its value is a topic that the node takes, and a row of event_tags otherwise.
-- name: keys_by_t
SELECT x.* FROM (
  SELECT l.* FROM cn_relay.topic_numbers n CROSS JOIN LATERAL (
    SELECT l.created_at, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.ingested_at, l.lifetime::text
    FROM cn_relay.topic_links l
    WHERE l.topic_no = n.topic_no AND l.created_at BETWEEN $3 AND $1
      AND (l.created_at < $1 OR (l.short_id, l.event_id) > (cn_relay.short_id($2), decode($2, 'hex')))
    ORDER BY l.created_at DESC, l.short_id, l.event_id LIMIT $4) l
  WHERE n.topic_id = ANY ($5::text[])
  UNION ALL
  SELECT g.* FROM unnest($5::text[]) AS k (value) CROSS JOIN LATERAL (
    SELECT g.created_at, g.event_id, g.ingested_at, g.lifetime::text FROM cn_relay.event_tags g
    WHERE g.name = 't' AND g.value = k.value AND g.created_at BETWEEN $3 AND $1
      AND (g.created_at < $1 OR g.event_id > $2)
    ORDER BY g.created_at DESC, g.event_id LIMIT $4) g) x
ORDER BY x.created_at DESC, x.event_id LIMIT $4;

-- name: keys_by_author
SELECT e.* FROM unnest($5::text[]) AS a (pubkey) CROSS JOIN LATERAL (
  SELECT e.created_at, e.event_id, e.ingested_at, e.lifetime::text, e.kind, e.non_public, e.expires_at
  FROM cn_relay.events e
  WHERE cn_relay.short_id(e.pubkey) = cn_relay.short_id(a.pubkey) AND e.pubkey = a.pubkey AND e.created_at BETWEEN $3 AND $1 AND (e.created_at < $1 OR e.event_id > $2)
    AND e.deleted_at IS NULL AND e.superseded_at IS NULL
  ORDER BY e.created_at DESC, cn_relay.short_id(e.event_id), e.event_id LIMIT $4) e
ORDER BY e.created_at DESC, e.event_id LIMIT $4;

-- name: keys_by_author_kind
SELECT e.* FROM unnest($5::text[]) AS a (pubkey) CROSS JOIN unnest($6::int[]) AS k (kind) CROSS JOIN LATERAL (
  SELECT e.created_at, e.event_id, e.ingested_at, e.lifetime::text, e.kind, e.non_public, e.expires_at
  FROM cn_relay.events e
  WHERE cn_relay.short_id(e.pubkey) = cn_relay.short_id(a.pubkey) AND e.pubkey = a.pubkey AND e.kind = k.kind AND e.created_at BETWEEN $3 AND $1
    AND (e.created_at < $1 OR e.event_id > $2) AND e.deleted_at IS NULL AND e.superseded_at IS NULL
  ORDER BY e.created_at DESC, cn_relay.short_id(e.event_id), e.event_id LIMIT $4) e
ORDER BY e.created_at DESC, e.event_id LIMIT $4;

-- name: keys_by_kind
SELECT e.* FROM unnest($5::int[]) AS k (kind) CROSS JOIN LATERAL (
  SELECT e.created_at, e.event_id, e.ingested_at, e.lifetime::text, e.kind, e.non_public, e.expires_at
  FROM cn_relay.events e
  WHERE e.kind = k.kind AND e.created_at BETWEEN $3 AND $1 AND (e.created_at < $1 OR e.event_id > $2)
    AND e.deleted_at IS NULL AND e.superseded_at IS NULL
  ORDER BY e.created_at DESC, cn_relay.short_id(e.event_id), e.event_id LIMIT $4) e
ORDER BY e.created_at DESC, e.event_id LIMIT $4;

-- name: keys_by_time
SELECT e.created_at, e.event_id, e.ingested_at, e.lifetime::text, e.kind, e.non_public, e.expires_at
FROM cn_relay.events e
WHERE e.created_at BETWEEN $3 AND $1 AND (e.created_at < $1 OR e.event_id > $2) AND e.deleted_at IS NULL
  AND e.superseded_at IS NULL
ORDER BY e.created_at DESC, cn_relay.short_id(e.event_id), e.event_id LIMIT $4;

-- name: keys_by_id
SELECT e.* FROM unnest($5::text[]) AS k (event_id) CROSS JOIN LATERAL (
  SELECT e.created_at, e.event_id, e.ingested_at, e.lifetime::text FROM cn_relay.events e
  WHERE e.event_id = k.event_id AND e.created_at BETWEEN $3 AND $1 AND (e.created_at < $1 OR e.event_id > $2)
    AND e.deleted_at IS NULL AND e.superseded_at IS NULL LIMIT 1) e
ORDER BY e.created_at DESC, e.event_id LIMIT $4;

-- The order of the log, oldest first: $1 the seq after which, $2 the last seq, $3 how many rows.
-- name: keys_by_topic_seq
SELECT l.* FROM cn_relay.topic_numbers n CROSS JOIN LATERAL (
  SELECT l.ingested_seq, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.ingested_at, l.lifetime::text FROM cn_relay.topic_links l
  WHERE l.topic_no = n.topic_no AND l.ingested_seq > $1 AND l.ingested_seq <= $2
  ORDER BY l.ingested_seq LIMIT $3) l
WHERE n.topic_id = ANY ($4::text[])
ORDER BY l.ingested_seq LIMIT $3;

-- name: keys_by_seq
SELECT e.ingested_seq, e.event_id, e.ingested_at, e.lifetime::text FROM cn_relay.events e
WHERE e.ingested_seq > $1 AND e.ingested_seq <= $2 AND e.deleted_at IS NULL AND e.superseded_at IS NULL
ORDER BY e.ingested_seq LIMIT $3;

-- Those of a page that are in effect, in its order, until their text has reached $2 bytes: `place` in the page from 1
-- on, and the text `so_far`. A regular event may have become one that is kept longer since the page was made; that is looked up
-- only where it is no longer among the regular ones.
-- name: events_of
SELECT e.* FROM (
  SELECT e.*, k.place, sum(e.bytes) OVER (ORDER BY k.place ROWS UNBOUNDED PRECEDING) AS so_far
  FROM unnest($1::text[], $3::timestamptz[], $4::text[]) WITH ORDINALITY AS k (event_id, ingested_at, lifetime, place)
    CROSS JOIN LATERAL (
      SELECT e.event_id, e.pubkey, e.created_at, e.kind, e.tags::text, e.content, e.sig, e.raw, e.ingested_seq,
        extract(epoch FROM e.expires_at)::bigint AS expires_at, e.non_public, e.topics,
        octet_length(e.tags::text) + octet_length(e.content) + coalesce(octet_length(e.raw), 0) AS bytes
      FROM (
        SELECT * FROM cn_relay.events e
        WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.lifetime = k.lifetime::"char"
        UNION ALL
        SELECT * FROM cn_relay.events_kept e
        WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND k.lifetime = 'r') e
      WHERE e.deleted_at IS NULL AND e.superseded_at IS NULL LIMIT 1) e) e
WHERE e.so_far - e.bytes < $2
ORDER BY e.place;

-- The same where nothing but the ids is known.
-- name: events_by_id
SELECT e.* FROM (
  SELECT e.*, k.place, sum(e.bytes) OVER (ORDER BY k.place ROWS UNBOUNDED PRECEDING) AS so_far
  FROM unnest($1::text[]) WITH ORDINALITY AS k (event_id, place)
    CROSS JOIN LATERAL (
      SELECT e.event_id, e.pubkey, e.created_at, e.kind, e.tags::text, e.content, e.sig, e.raw, e.ingested_seq,
        extract(epoch FROM e.expires_at)::bigint AS expires_at, e.non_public, e.topics,
        octet_length(e.tags::text) + octet_length(e.content) + coalesce(octet_length(e.raw), 0) AS bytes
      FROM cn_relay.events e
      WHERE e.event_id = k.event_id AND e.deleted_at IS NULL AND e.superseded_at IS NULL LIMIT 1) e) e
WHERE e.so_far - e.bytes < $2
ORDER BY e.place;

-- What a COUNT asks for whose filter needs nothing but links. $3 whether the asker may see what is not public; $5 the keys
-- that the asker has proven, $6 the kinds of which everybody counts only those that they sent or that are for them.
-- name: count_by_topic
SELECT count(DISTINCT l.event_id) FROM cn_relay.topic_links l
WHERE l.topic_no = ANY (ARRAY(SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = ANY ($4))) AND l.created_at BETWEEN $1 AND $2 AND (NOT l.non_public OR $3)
  AND (l.expires_at IS NULL OR l.expires_at > now()) AND ($7::int[] IS NULL OR l.kind = ANY ($7))
  AND ($8::text[] IS NULL OR l.short_author = ANY (ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest($8::text[]) AS a (id))))
  AND (l.kind <> ALL ($6::int[]) OR l.short_author = ANY (ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest($5::text[]) AS a (id))) OR EXISTS (
    SELECT FROM cn_relay.event_tags g
    WHERE g.name = 'p' AND g.value = ANY ($5::text[]) AND g.created_at = l.created_at AND g.event_id = encode(l.event_id, 'hex')
      AND g.ingested_at = l.ingested_at AND g.lifetime = l.lifetime));

-- The same for several filters; an event counts once. $7 to $11 have a filter in each row, lists as the text of an array,
-- NULL for any; $1, $2 and $4 are the bounds and the topics of all of them. MATERIALIZED: the texts are read once and
-- not for each link.
-- name: count_by_links
WITH f AS MATERIALIZED (
  SELECT f.since, f.until, ARRAY(SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = ANY (f.topics::text[])) AS topics, f.kinds::int[],
    CASE WHEN f.authors IS NOT NULL THEN
      ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest(f.authors::text[]) AS a (id)) END AS authors
  FROM unnest($7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[]) AS f (since, until, topics, kinds, authors))
SELECT count(*) FROM (
  SELECT l.event_id FROM cn_relay.topic_links l
  WHERE l.topic_no = ANY (ARRAY(SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = ANY ($4))) AND l.created_at BETWEEN $1 AND $2 AND (NOT l.non_public OR $3)
    AND (l.expires_at IS NULL OR l.expires_at > now())
    AND EXISTS (SELECT FROM f WHERE l.created_at BETWEEN f.since AND f.until AND l.topic_no = ANY (f.topics)
      AND (f.kinds IS NULL OR l.kind = ANY (f.kinds)) AND (f.authors IS NULL OR l.short_author = ANY (f.authors)))
    AND (l.kind <> ALL ($6::int[]) OR l.short_author = ANY (ARRAY(SELECT cn_relay.short_id(a.id) FROM unnest($5::text[]) AS a (id))) OR EXISTS (
      SELECT FROM cn_relay.event_tags g
      WHERE g.name = 'p' AND g.value = ANY ($5::text[]) AND g.created_at = l.created_at AND g.event_id = encode(l.event_id, 'hex')
        AND g.ingested_at = l.ingested_at AND g.lifetime = l.lifetime))
  GROUP BY l.event_id) l;

-- Rows that somebody wrote to the log after $1, up to $2, with the events that are in effect.
-- name: follow_log
SELECT o.seq, o.op, o.event_id, o.created_at, o.topic_id,
  extract(epoch FROM clock_timestamp() - o.appended_at)::double precision AS age, e.*
FROM (SELECT * FROM cn_relay.events_outbox o WHERE o.seq > $1 AND o.seq <= $2 ORDER BY o.seq LIMIT $3) o
  LEFT JOIN LATERAL (
    SELECT e.pubkey, e.kind, e.tags::text, e.content, e.sig, e.raw, e.ingested_seq,
      extract(epoch FROM e.expires_at)::bigint AS expires_at, e.non_public, e.topics
    FROM cn_relay.events e
    WHERE o.op = 'upsert' AND e.event_id = o.event_id AND e.ingested_at = o.ingested_at AND e.deleted_at IS NULL
      AND e.superseded_at IS NULL LIMIT 1) e ON true
ORDER BY o.seq;

-- A plain relay is asked for authors, kinds and times without a topic.
-- name: has_open_indexes
SELECT to_regclass('cn_relay.events_open_seq') IS NOT NULL;

-- name: ensure_open_indexes
SELECT cn_relay.ensure_open_indexes();
