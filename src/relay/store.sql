-- The writing side: what one batch of events does. All of it runs under the log's lock, in one transaction, and the
-- lock is taken by a statement of its own, because a statement's snapshot is older than a lock that it takes itself.

-- name: lock_log
SELECT waited, head, since, moved FROM cn_relay.lock_log($1);

-- A batch whose events can't affect each other. Returns the outcome of each (0 stored, 1 already there, 2 a newer version is
-- there, 3 deleted by its author or, a gift wrap, by a recipient, 4 these have vanished, 5 to 7 its author, itself or one of
-- its topics is blocked), the seqs of those stored, and the versions replaced. Relays refuse what is blocked themselves; what
-- was on its way when the block was made is refused here, for an hour: a look-up takes 9 us an event. Scalar subqueries and
-- LATERAL keep every lookup an index probe, whatever the planner believes of table sizes.
-- name: store_events
WITH i AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                       $8::bigint[], $9::bytea[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
                       $15::text[], $16::boolean[], $23::text[], $24::boolean[], $25::int[])
    WITH ORDINALITY AS i (event_id, pubkey, kind, created_at, tags, content, sig, expires_at, raw, lifetime,
                          source, class, effective_key, event_json, topics, non_public, recipients, is_linked,
                          keep_days, ord)
), v AS MATERIALIZED (
  SELECT i.*, c.event_id AS old_id, c.created_at AS old_created_at, c.ingested_at AS old_ingested_at,
    CASE WHEN c.gone_at IS NULL THEN c.topics END AS old_topics,
    coalesce(CASE WHEN (SELECT EXISTS (SELECT FROM cn_relay.blocks b WHERE b.added_at > now() - interval '1 hour'))
                  THEN cn_relay.block_verdict(i.event_id, i.pubkey, string_to_array(i.topics, E'\x1f')) END, CASE
      WHEN i.kind <> 62 AND (SELECT q.until >= i.created_at FROM cn_relay.vanish_requests q
                             WHERE q.pubkey = i.pubkey) THEN 4
      WHEN i.recipients IS NOT NULL AND (
             SELECT true FROM cn_relay.vanish_requests q
             WHERE q.pubkey = ANY (string_to_array(i.recipients, ',')) AND q.until >= i.created_at LIMIT 1) THEN 4
      WHEN i.kind NOT IN (5, 62) AND (SELECT true FROM cn_relay.deletion_tombstones t
                                      WHERE t.target_event_id = i.event_id AND t.pubkey = i.pubkey) THEN 3
      WHEN i.recipients IS NOT NULL AND (
             SELECT true FROM cn_relay.deletion_tombstones t
             WHERE t.target_event_id = i.event_id AND t.pubkey = ANY (string_to_array(i.recipients, ',')) LIMIT 1) THEN 3
      WHEN i.class IS NOT NULL AND (SELECT true FROM cn_relay.deletion_tombstones t
                                    WHERE t.target_a = i.effective_key AND t.created_at >= i.created_at) THEN 3
      WHEN c.event_id <> i.event_id AND (c.created_at > i.created_at OR (
             c.created_at = i.created_at AND c.event_id < i.event_id)) THEN 2
      WHEN (SELECT true FROM cn_relay.event_dedupe d WHERE d.event_id = i.event_id) THEN 1
      ELSE 0
    END) AS verdict
  FROM i LEFT JOIN LATERAL (
    SELECT c.event_id, c.created_at, c.ingested_at, c.topics, c.gone_at FROM cn_relay.current_versions c
    WHERE c.effective_key = i.effective_key AND c.class = i.class::"char" LIMIT 1) c ON i.class IS NOT NULL
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (
    SELECT v.*, o.op, o.topic_id, o.n
    FROM v CROSS JOIN LATERAL (
      SELECT 'delete' AS op, t.topic_id, t.n FROM unnest(v.old_topics) WITH ORDINALITY AS t (topic_id, n)
      UNION ALL
      SELECT 'upsert', t.topic_id, t.n
      FROM unnest(string_to_array(v.topics, E'\x1f')) WITH ORDINALITY AS t (topic_id, n)) o
    WHERE v.verdict = 0
    ORDER BY v.ord, o.op, o.n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key,
                                      reason)
  SELECT seq, op, CASE op WHEN 'delete' THEN old_id ELSE event_id END, topic_id, kind,
    CASE op WHEN 'delete' THEN old_created_at ELSE created_at END,
    CASE op WHEN 'delete' THEN old_ingested_at ELSE now() END, effective_key,
    CASE op WHEN 'delete' THEN 'replaced' END
  FROM r
), deduped AS (
  INSERT INTO cn_relay.event_dedupe (event_id, keep_days) SELECT event_id, keep_days FROM v WHERE verdict = 0
), stored AS (
  INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq,
                               source, expires_at, non_public, lifetime, effective_key, topics, raw)
  SELECT event_id, pubkey, kind, created_at, tags::json, content, sig, now(), seq, source,
    to_timestamp(expires_at), non_public, lifetime::"char", effective_key, string_to_array(topics, E'\x1f'), raw
  FROM r WHERE op = 'upsert' AND n = 1
), linked AS (
  INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, ingested_at, ingested_seq,
                                    expires_at, non_public, lifetime)
  SELECT coalesce((SELECT t.topic_no FROM cn_relay.topic_numbers t WHERE t.topic_id = r.topic_id), cn_relay.topic_no(topic_id)),
    decode(event_id, 'hex'), cn_relay.short_id(event_id), cn_relay.short_id(pubkey), kind, created_at, now(), seq - n + 1,
    to_timestamp(expires_at), non_public, lifetime::"char"
  FROM r WHERE op = 'upsert' AND is_linked
), tagged AS (
  INSERT INTO cn_relay.event_tags (name, value, created_at, event_id, ingested_at, lifetime)
  SELECT t.name::"char", t.value, t.created_at, t.event_id, now(), t.lifetime::"char"
  FROM unnest($17::int[], $18::text[], $19::text[], $20::bigint[], $21::text[], $22::text[])
         AS t (ord, name, value, created_at, event_id, lifetime)
  WHERE (SELECT array_agg(verdict ORDER BY ord) FROM v)[t.ord] = 0
), counted AS (
  INSERT INTO cn_relay.topic_usage AS u (topic_id, week, events, bytes)
  SELECT t.topic_id, CASE r.lifetime WHEN 'r' THEN cn_relay.week_of(now()) ELSE '-infinity' END AS week, count(*),
    sum(cn_relay.event_bytes(r.content, r.tags, r.raw))
  FROM r CROSS JOIN LATERAL (SELECT r.topic_id UNION ALL SELECT '' WHERE r.n = 1) t
  WHERE r.op = 'upsert' GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (topic_id, week) DO UPDATE SET events = u.events + excluded.events, bytes = u.bytes + excluded.bytes
), current AS (
  INSERT INTO cn_relay.current_versions (class, effective_key, pubkey, kind, event_id, created_at, ingested_at,
                                         topics, event_json)
  SELECT class::"char", effective_key, pubkey, kind, event_id, created_at, now(),
    string_to_array(topics, E'\x1f'), event_json::json
  FROM v WHERE verdict = 0 AND class IS NOT NULL
  ON CONFLICT (effective_key, class) DO UPDATE SET event_id = excluded.event_id,
    created_at = excluded.created_at, ingested_at = excluded.ingested_at, topics = excluded.topics,
    event_json = excluded.event_json, gone_at = NULL, updated_at = now()
)
SELECT array_agg(verdict ORDER BY ord) AS verdicts,
  array_agg(old_id ORDER BY ord) FILTER (WHERE verdict = 0 AND old_topics IS NOT NULL) AS replaced_ids,
  array_agg(old_created_at ORDER BY ord) FILTER (WHERE verdict = 0 AND old_topics IS NOT NULL) AS replaced_times,
  (SELECT array_agg(seq ORDER BY ord) FROM r WHERE op = 'upsert' AND n = 1) AS seqs,
  count(CASE WHEN verdict = 0 AND old_topics IS NOT NULL
             THEN cn_relay.retire(old_id, old_ingested_at, 'k', 'superseded') IS NULL END) AS retired
FROM v;

-- name: log_head
SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM cn_relay.events_outbox_seq;

-- What the deletion requests of the batch do, one row for each target; only those count that store_events has
-- just stored (now() is the transaction's). Returns the events that lost their effect.
-- name: apply_deletions
WITH f AS MATERIALIZED (
  SELECT t.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::int[])
    WITH ORDINALITY AS t (deletion_id, pubkey, created_at, target_id, target_a, keep_days, ord)
  WHERE (SELECT true FROM cn_relay.events_kept e WHERE e.event_id = t.deletion_id AND e.ingested_at = now()
         LIMIT 1)
), named AS (
  SELECT f.ord, e.* FROM f CROSS JOIN LATERAL (
    SELECT e.event_id, e.ingested_at, e.lifetime, e.kind, e.created_at, e.effective_key, e.topics,
      e.superseded_at IS NULL AND e.expired_at IS NULL AS was_effective
    FROM cn_relay.events e
    WHERE e.event_id = f.target_id AND e.kind NOT IN (5, 62) AND e.deleted_at IS NULL AND (
      e.pubkey = f.pubkey OR (e.kind = 1059 AND EXISTS (
        SELECT FROM cn_relay.event_tags g
        WHERE g.name = 'p' AND g.value = f.pubkey AND g.created_at = e.created_at AND g.event_id = e.event_id
          AND g.ingested_at = e.ingested_at AND g.lifetime = e.lifetime))) LIMIT 1) e
  UNION ALL
  SELECT f.ord, c.* FROM f CROSS JOIN LATERAL (
    SELECT c.event_id, c.ingested_at, 'k'::"char", c.kind, c.created_at, c.effective_key, c.topics, true
    FROM cn_relay.current_versions c
    WHERE c.effective_key = f.target_a AND c.created_at <= f.created_at AND c.gone_at IS NULL LIMIT 1) c
), hit AS MATERIALIZED (
  SELECT DISTINCT ON (event_id) * FROM named ORDER BY event_id, ord
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (
    SELECT hit.*, t.topic_id, t.n FROM hit CROSS JOIN LATERAL unnest(hit.topics) WITH ORDINALITY AS t (topic_id, n)
    WHERE hit.was_effective ORDER BY hit.ord, t.n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key,
                                      reason)
  SELECT seq, 'delete', event_id, topic_id, kind, created_at, ingested_at, effective_key, 'nip09' FROM r
), marked AS (
  UPDATE cn_relay.current_versions c SET gone_at = now(), updated_at = now() FROM hit
  WHERE c.effective_key = hit.effective_key AND c.event_id = hit.event_id
), tombs AS (
  INSERT INTO cn_relay.deletion_tombstones (pubkey, target_event_id, deletion_event_id, created_at, keep_days, applied_at)
  SELECT f.pubkey, f.target_id, f.deletion_id, f.created_at, f.keep_days,
    CASE WHEN (SELECT true FROM hit WHERE hit.event_id = f.target_id) THEN now() END
  FROM f WHERE f.target_id IS NOT NULL
  -- Its days count from the last request.
  ON CONFLICT (target_event_id, pubkey) WHERE target_event_id IS NOT NULL DO UPDATE SET
    deletion_event_id = excluded.deletion_event_id, requested_at = excluded.requested_at,
    keep_days = coalesce(excluded.keep_days, deletion_tombstones.keep_days),
    applied_at = coalesce(deletion_tombstones.applied_at, excluded.applied_at)
), address_tombs AS (
  INSERT INTO cn_relay.deletion_tombstones (pubkey, target_a, deletion_event_id, created_at, keep_days, applied_at)
  SELECT f.pubkey, f.target_a, f.deletion_id, f.created_at, f.keep_days,
    CASE WHEN (SELECT true FROM hit WHERE hit.effective_key = f.target_a LIMIT 1) THEN now() END
  FROM f WHERE f.target_a IS NOT NULL
  ON CONFLICT (target_a) WHERE target_a IS NOT NULL DO UPDATE SET created_at = excluded.created_at,
    deletion_event_id = excluded.deletion_event_id, requested_at = excluded.requested_at,
    keep_days = excluded.keep_days,
    applied_at = excluded.applied_at
    WHERE deletion_tombstones.created_at < excluded.created_at
)
SELECT hit.event_id, hit.created_at,
  cn_relay.retire(hit.event_id, hit.ingested_at, hit.lifetime, 'deleted') IS NULL AS retired
FROM hit ORDER BY hit.ord;

-- The requests to vanish of the batch that store_events has just stored. From this commit on nothing of their authors up
-- to then is taken; what is there is erased later (eraser.sql).
-- name: request_vanish
INSERT INTO cn_relay.vanish_requests AS q (pubkey, request_id, until)
SELECT r.pubkey, r.request_id, r.created_at
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS r (request_id, pubkey, created_at)
WHERE (SELECT true FROM cn_relay.events_kept e WHERE e.event_id = r.request_id AND e.ingested_at = now() LIMIT 1)
ON CONFLICT (pubkey) DO UPDATE SET request_id = excluded.request_id, until = excluded.until,
  requested_at = excluded.requested_at, pass = NULL, done_at = NULL
  WHERE q.until < excluded.until;

-- Deletes these events and says so in the log with the reason $4, also of those that were not in effect any more: consumers
-- that keep them learn that they must erase them, and `todoke audit` that they are not lost. Returns those that were there.
-- name: erase_events
WITH hit AS MATERIALIZED (
  SELECT e.* FROM unnest($1::text[], $2::timestamptz[], $3::text[]) WITH ORDINALITY AS k (event_id, ingested_at, lifetime, ord)
    CROSS JOIN LATERAL (
      SELECT k.ord, e.event_id, e.ingested_at, e.lifetime, e.kind, e.created_at, e.effective_key, e.topics
      FROM cn_relay.events e
      WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.lifetime = k.lifetime::"char" LIMIT 1) e
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (
    SELECT hit.*, t.topic_id, t.n FROM hit CROSS JOIN LATERAL unnest(hit.topics) WITH ORDINALITY AS t (topic_id, n)
    ORDER BY hit.ord, t.n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key,
                                      reason)
  SELECT seq, 'delete', event_id, topic_id, kind, created_at, ingested_at, effective_key, $4 FROM r
), forgotten AS (
  DELETE FROM cn_relay.current_versions c USING hit
  WHERE c.effective_key = hit.effective_key AND c.event_id = hit.event_id
)
SELECT hit.event_id, hit.created_at, cn_relay.erase(hit.event_id, hit.ingested_at, hit.lifetime) IS NULL AS erased
FROM hit ORDER BY hit.ord;

-- Deletes the dead letters of consumers about erased events. After erase_events and in its transaction: a consumer that buries
-- a row locks the event first, so its letter can be seen here, or it finds no event and writes none.
-- name: forget_dead_letters
DELETE FROM cn_relay.consumer_dead_letters WHERE event_id = ANY ($1::text[]);

-- Ends the effect of these events because the operator says so. Returns those that were not deleted before.
-- name: hide_events
WITH hit AS MATERIALIZED (
  SELECT k.ord, e.* FROM unnest($1::text[]) WITH ORDINALITY AS k (event_id, ord) CROSS JOIN LATERAL (
    SELECT e.event_id, e.ingested_at, e.lifetime, e.kind, e.created_at, e.effective_key, e.topics,
      e.superseded_at IS NULL AND e.expired_at IS NULL AS was_effective
    FROM cn_relay.events e WHERE e.event_id = k.event_id AND e.deleted_at IS NULL LIMIT 1) e
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (
    SELECT hit.*, t.topic_id, t.n FROM hit CROSS JOIN LATERAL unnest(hit.topics) WITH ORDINALITY AS t (topic_id, n)
    WHERE hit.was_effective ORDER BY hit.ord, t.n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key,
                                      reason)
  SELECT seq, 'delete', event_id, topic_id, kind, created_at, ingested_at, effective_key, 'operator' FROM r
), marked AS (
  UPDATE cn_relay.current_versions c SET gone_at = now(), updated_at = now() FROM hit
  WHERE c.effective_key = hit.effective_key AND c.event_id = hit.event_id
)
SELECT hit.event_id, hit.created_at,
  cn_relay.retire(hit.event_id, hit.ingested_at, hit.lifetime, 'deleted') IS NULL AS retired
FROM hit ORDER BY hit.ord;

-- Where the row of an event stands, as erase_events is told.
-- name: place_of_event
SELECT event_id, ingested_at, lifetime::text FROM cn_relay.events WHERE event_id = $1 LIMIT 1;

-- Events whose time has come, the earliest first.
-- name: sweep_expired
WITH hit AS MATERIALIZED (
  SELECT event_id, ingested_at, lifetime, kind, created_at, effective_key, topics, expires_at
  FROM cn_relay.events
  WHERE expires_at <= now() AND expires_at IS NOT NULL AND expired_at IS NULL AND deleted_at IS NULL
    AND superseded_at IS NULL
  ORDER BY expires_at LIMIT $1
), r AS MATERIALIZED (
  SELECT nextval('cn_relay.events_outbox_seq') AS seq, x.* FROM (
    SELECT hit.*, t.topic_id, t.n FROM hit CROSS JOIN LATERAL unnest(hit.topics) WITH ORDINALITY AS t (topic_id, n)
    ORDER BY hit.expires_at, hit.event_id, t.n) x
), logged AS (
  INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key,
                                      reason)
  SELECT seq, 'delete', event_id, topic_id, kind, created_at, ingested_at, effective_key, 'expiration' FROM r
), marked AS (
  UPDATE cn_relay.current_versions c SET gone_at = now(), updated_at = now() FROM hit
  WHERE c.effective_key = hit.effective_key AND c.event_id = hit.event_id
)
SELECT hit.event_id, hit.created_at,
  cn_relay.retire(hit.event_id, hit.ingested_at, hit.lifetime, 'expired') IS NULL AS retired
FROM hit ORDER BY hit.expires_at;

-- Without the lock: whether there is anything to sweep, and whether the log has moved to another place since $1 or its database
-- was restored from a dump under this session.
-- name: due
SELECT EXISTS (
    SELECT FROM cn_relay.events
    WHERE expires_at <= now() AND expires_at IS NOT NULL AND expired_at IS NULL AND deleted_at IS NULL
      AND superseded_at IS NULL) AS sweep,
  NOT EXISTS (SELECT FROM cn_relay.log_identity i WHERE i.since_seq = $1 AND i.xmin = i.written_by) AS check_log;

-- Duplicates that were only counted in memory so far.
-- name: add_dedupe_hits
UPDATE cn_relay.event_dedupe d
SET seen_count = d.seen_count + h.hits, last_seen_at = greatest(d.last_seen_at, h.last_seen_at)
FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS h (event_id, hits, last_seen_at)
WHERE d.event_id = h.event_id;

-- name: ensure_partitions
SELECT cn_relay.ensure_partitions(now() + interval '3 days');

-- name: notify_outbox
SELECT pg_notify(cn_names.channel_log(), $1);
