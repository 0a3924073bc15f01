-- A FIX session: its owner, its orders and its reports. Every write but the first checks the owner's epoch, so that a worker
-- that lost the session changes nothing.

-- Makes this worker the owner of a session that nobody owns, with $4 numbers out for its Logon and whatever else it sends
-- before the first round. No row: another worker owns it.
-- name: fix_claim_session
INSERT INTO orders.fix_sessions AS s (session, owner, epoch, leased_until, next_out)
VALUES ($1, $2, 1, clock_timestamp() + $3 * interval '1 millisecond', 1 + $4)
ON CONFLICT (session) DO UPDATE
SET owner = $2, epoch = s.epoch + 1, leased_until = clock_timestamp() + $3 * interval '1 millisecond',
  next_out = s.next_out + $4, updated_at = now()
WHERE s.owner IS NULL OR s.leased_until < clock_timestamp()
RETURNING epoch, next_out - $4 AS next_out, next_in;

-- The owner, for workers that wait for the session.
-- name: fix_owner
SELECT coalesce(owner, '') AS owner FROM orders.fix_sessions WHERE session = $1;

-- Renews the lease and stores the numbers. No row: another worker owns the session. The other statements of the same
-- transaction check the epoch themselves; this one has locked the row before.
-- name: fix_keep
UPDATE orders.fix_sessions
SET leased_until = clock_timestamp() + $3 * interval '1 millisecond', next_out = $4, next_in = $5, updated_at = now()
WHERE session = $1 AND epoch = $2 AND owner IS NOT NULL
RETURNING epoch;

-- name: fix_give_up
UPDATE orders.fix_sessions
SET owner = NULL, leased_until = NULL, next_out = $3, next_in = $4, updated_at = now()
WHERE session = $1 AND epoch = $2;

-- Reports of an order that had the same key before, and is forgotten by the ledger, go to the archive.
-- name: fix_forget_former
WITH gone AS (
  DELETE FROM orders.fix_reports r
  USING unnest($3::text[], $4::bigint[]) AS t (cl_ord_id, outbox_id), orders.fix_orders f
  WHERE EXISTS (SELECT FROM orders.fix_sessions s WHERE s.session = $1 AND s.epoch = $2)
    AND f.session = $1 AND f.cl_ord_id = t.cl_ord_id AND f.outbox_id <> t.outbox_id
    AND r.session = $1 AND r.cl_ord_id = t.cl_ord_id
  RETURNING f.outbox_id, r.*)
INSERT INTO orders.fix_reports_archive (outbox_id, session, cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status, ord_rej_reason, last_qty,
  last_px, cum_qty, avg_px, transact_time, text, received_at)
SELECT g.outbox_id, g.session, g.cl_ord_id, g.exec_id, g.order_id, g.exec_type, g.exec_ref_id, g.ord_status, g.ord_rej_reason, g.last_qty,
  g.last_px, g.cum_qty, g.avg_px, g.transact_time, g.text, g.received_at
FROM gone g;

-- name: fix_insert_orders
INSERT INTO orders.fix_orders AS f (session, cl_ord_id, outbox_id, idempotency_key)
SELECT $1, t.cl_ord_id, t.outbox_id, t.idempotency_key
FROM unnest($3::text[], $4::bigint[], $5::text[]) AS t (cl_ord_id, outbox_id, idempotency_key)
WHERE EXISTS (SELECT FROM orders.fix_sessions s WHERE s.session = $1 AND s.epoch = $2)
ORDER BY t.cl_ord_id
ON CONFLICT (session, cl_ord_id) DO UPDATE
SET outbox_id = excluded.outbox_id, idempotency_key = excluded.idempotency_key,
  reports_stored = CASE WHEN f.outbox_id = excluded.outbox_id THEN f.reports_stored ELSE 0 END,
  reports_applied = CASE WHEN f.outbox_id = excluded.outbox_id THEN f.reports_applied ELSE 0 END,
  is_watched = true, asked_at = now(), touched_at = now()
WHERE f.outbox_id <> excluded.outbox_id OR NOT f.is_watched;

-- Each report once. Returned: for each ClOrdID with a new one, how many there are, and whether the order is known.
-- name: fix_insert_reports
WITH stored AS (
  INSERT INTO orders.fix_reports (session, cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status,
    ord_rej_reason, last_qty, last_px, cum_qty, avg_px, transact_time, text)
  SELECT $1, t.cl_ord_id, t.exec_id, t.order_id, t.exec_type, t.exec_ref_id, t.ord_status, t.ord_rej_reason, t.last_qty,
    t.last_px, t.cum_qty, t.avg_px, t.transact_time, t.text
  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
              $12::text[], $13::text[], $14::text[], $15::text[]) WITH ORDINALITY
    AS t (cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status, ord_rej_reason, last_qty, last_px, cum_qty,
          avg_px, transact_time, text, place)
  WHERE EXISTS (SELECT FROM orders.fix_sessions s WHERE s.session = $1 AND s.epoch = $2)
  ORDER BY t.place
  ON CONFLICT (session, cl_ord_id, exec_id) DO NOTHING
  RETURNING cl_ord_id),
counted AS (SELECT cl_ord_id, count(*) AS fresh FROM stored GROUP BY cl_ord_id),
marked AS (
  UPDATE orders.fix_orders f SET reports_stored = f.reports_stored + c.fresh, is_watched = true, touched_at = now()
  FROM counted c WHERE f.session = $1 AND f.cl_ord_id = c.cl_ord_id
  RETURNING f.cl_ord_id)
SELECT c.cl_ord_id, c.fresh, m.cl_ord_id IS NOT NULL AS is_known
FROM counted c LEFT JOIN marked m ON m.cl_ord_id = c.cl_ord_id;

-- The answers to status requests: one for each order, the last, which takes its place after the reports that came before it.
-- Their exec_id is one that no report can have. Only of orders that went out from here.
-- name: fix_upsert_statuses
WITH stored AS (
  INSERT INTO orders.fix_reports (session, cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status,
    ord_rej_reason, last_qty, last_px, cum_qty, avg_px, transact_time, text)
  SELECT $1, t.cl_ord_id, t.exec_id, t.order_id, t.exec_type, t.exec_ref_id, t.ord_status, t.ord_rej_reason, t.last_qty,
    t.last_px, t.cum_qty, t.avg_px, t.transact_time, t.text
  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
              $12::text[], $13::text[], $14::text[], $15::text[])
    AS t (cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status, ord_rej_reason, last_qty, last_px, cum_qty,
          avg_px, transact_time, text)
    JOIN orders.fix_orders f ON f.session = $1 AND f.cl_ord_id = t.cl_ord_id
  WHERE EXISTS (SELECT FROM orders.fix_sessions s WHERE s.session = $1 AND s.epoch = $2)
  ORDER BY t.cl_ord_id
  ON CONFLICT (session, cl_ord_id, exec_id) DO UPDATE
  SET id = DEFAULT, order_id = excluded.order_id, ord_status = excluded.ord_status, ord_rej_reason = excluded.ord_rej_reason,
    last_qty = excluded.last_qty, last_px = excluded.last_px, cum_qty = excluded.cum_qty, avg_px = excluded.avg_px,
    transact_time = excluded.transact_time, text = excluded.text, received_at = now()
  RETURNING cl_ord_id)
UPDATE orders.fix_orders f SET reports_stored = f.reports_stored + 1
FROM stored s WHERE f.session = $1 AND f.cl_ord_id = s.cl_ord_id;

-- Orders whose turn it is to be asked about: they went out, or were asked about last, more than $2 seconds ago; at most $3, the
-- longest ago first. All count as asked about from here on. One that is over, and neither in doubt nor at work, is watched no
-- more. Returned with whether the broker may know more of it than its ledger; one that is being sent is asked by its own try.
-- name: fix_watched
WITH due AS MATERIALIZED (
  SELECT f.cl_ord_id, f.outbox_id, f.idempotency_key FROM orders.fix_orders f
  WHERE f.session = $1 AND f.is_watched AND f.asked_at < now() - make_interval(secs => $2)
  ORDER BY f.asked_at LIMIT $3),
seen AS MATERIALIZED (
  SELECT d.cl_ord_id, d.outbox_id, coalesce(o.status IN ('pending', 'sending', 'failed'), false) AS is_open,
    coalesce(o.status <> 'sending' AND o.in_doubt, false) OR coalesce(orders.is_working(l), false) AS is_doubtful,
    coalesce(o.order_request_json, a.order_request_json)::text AS document
  FROM due d LEFT JOIN orders.outbox_orders o ON o.id = d.outbox_id
    LEFT JOIN LATERAL (
      SELECT a.order_request_json, a.request_digest FROM orders.outbox_orders_archive a WHERE a.id = d.outbox_id LIMIT 1) a
      ON o.id IS NULL
    LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = d.idempotency_key
      AND l.request_digest = coalesce(o.request_digest, a.request_digest))
UPDATE orders.fix_orders f SET asked_at = now(), is_watched = s.is_open OR s.is_doubtful
FROM seen s WHERE f.session = $1 AND f.cl_ord_id = s.cl_ord_id AND f.outbox_id = s.outbox_id
RETURNING f.outbox_id, f.cl_ord_id, s.is_doubtful, s.document;

-- The reports of the broker on the orders $1, a row for each report, or one without a report. The session is the one
-- that the order was written down for or, where it never was, the only one there is. Where another order has gone out
-- with the same ClOrdID since, the archive has the reports of this one.
-- name: fix_told
WITH sent AS (
  SELECT t.outbox_id, s.broker_id
  FROM unnest($1::bigint[]) AS t (outbox_id)
    CROSS JOIN LATERAL (
      SELECT s.broker_id FROM orders.sends s WHERE s.outbox_id = t.outbox_id AND s.adapter = 'fix' AND s.broker_id IS NOT NULL
      ORDER BY s.claim_no DESC LIMIT 1) s),
placed AS MATERIALIZED (
  SELECT sent.outbox_id, sent.broker_id, coalesce(f.outbox_id <> sent.outbox_id, false) AS is_of_another,
    coalesce(f.is_watched, false) AS is_watched,
    coalesce(f.session, (SELECT min(x.session) FROM orders.fix_sessions x HAVING count(*) = 1)) AS session
  FROM sent LEFT JOIN LATERAL (
    SELECT f.session, f.outbox_id, f.is_watched AND (o.in_doubt OR orders.is_working(l)) AS is_watched
    FROM orders.fix_sessions x JOIN orders.fix_orders f ON f.session = x.session AND f.cl_ord_id = sent.broker_id
      LEFT JOIN orders.outbox_orders o ON o.id = f.outbox_id
      LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = f.idempotency_key
    ORDER BY f.outbox_id = sent.outbox_id DESC LIMIT 1) f ON true)
SELECT p.outbox_id, coalesce(p.session, '') AS session, p.is_of_another, p.is_watched,
  coalesce(x.owner IS NOT NULL AND x.leased_until > clock_timestamp(), false) AS has_owner,
  r.cl_ord_id, r.exec_id, r.order_id, r.exec_type, r.exec_ref_id, r.ord_status, r.ord_rej_reason, r.last_qty, r.last_px,
  r.cum_qty, r.avg_px, r.transact_time, r.text
FROM placed p LEFT JOIN orders.fix_sessions x ON x.session = p.session
  LEFT JOIN LATERAL (
    SELECT i.id, i.received_at, i.cl_ord_id, i.exec_id, i.order_id, i.exec_type, i.exec_ref_id, i.ord_status, i.ord_rej_reason,
      i.last_qty, i.last_px, i.cum_qty, i.avg_px, i.transact_time, i.text
    FROM orders.fix_reports i WHERE NOT p.is_of_another AND i.session = p.session AND i.cl_ord_id = p.broker_id
    UNION ALL
    SELECT NULL, a.received_at, a.cl_ord_id, a.exec_id, a.order_id, a.exec_type, a.exec_ref_id, a.ord_status, a.ord_rej_reason,
      a.last_qty, a.last_px, a.cum_qty, a.avg_px, a.transact_time, a.text
    FROM orders.fix_reports_archive a WHERE a.outbox_id = p.outbox_id) r ON true
ORDER BY p.outbox_id, r.received_at, r.id;

-- name: fix_reports_of
SELECT r.cl_ord_id, r.exec_id, r.order_id, r.exec_type, r.exec_ref_id, r.ord_status, r.ord_rej_reason, r.last_qty,
  r.last_px, r.cum_qty, r.avg_px, r.transact_time, r.text
FROM orders.fix_reports r
WHERE r.session = $1 AND r.cl_ord_id = ANY ($2::text[])
ORDER BY r.id;

-- Whether the reports under a ClOrdID are those of this order.
-- name: fix_is_order
SELECT EXISTS (SELECT FROM orders.fix_orders WHERE session = $1 AND cl_ord_id = $2 AND outbox_id = $3) AS is_order;

-- Orders with reports that the ledger may not show yet, but for those that are being sent: their own try settles them.
-- name: fix_unapplied
SELECT f.cl_ord_id, f.outbox_id, f.idempotency_key, f.reports_stored
FROM orders.fix_orders f LEFT JOIN orders.outbox_orders o ON o.id = f.outbox_id
WHERE f.session = $1 AND f.reports_stored > f.reports_applied AND o.status IS DISTINCT FROM 'sending'
ORDER BY f.session, f.cl_ord_id LIMIT $2;

-- NOWAIT: the next round tries rows again that somebody has locked now.
-- name: fix_lock_order
SELECT o.status, o.in_doubt, o.order_request_json FROM orders.outbox_orders o WHERE o.id = $1 FOR UPDATE NOWAIT;

-- The document of an order that was archived.
-- name: fix_archived_order
SELECT a.order_request_json FROM orders.outbox_orders_archive a WHERE a.id = $1 LIMIT 1;

-- name: fix_lock_ledger
SELECT l.status, l.response_payload_json::text AS payload FROM orders.idempo_ledger l
WHERE l.idempotency_key = $1 FOR UPDATE NOWAIT;

-- name: fix_write_ledger
UPDATE orders.idempo_ledger SET response_payload_json = $2::text::json, result_digest = $3, last_seen_at = now(),
  expires_at = now() + interval '48 hours'
WHERE idempotency_key = $1 AND status = 'succeeded';

-- Makes an order due at once: it is looked up then, and its reports settle it.
-- name: fix_wake_order
WITH woken AS (
  UPDATE orders.outbox_orders o SET status = 'pending', next_run_at = now(), in_doubt = true, updated_at = now()
  WHERE o.id = $1 AND o.status IN ('pending', 'failed', 'aborted')
  RETURNING o.id, o.idempotency_key),
audited AS (
  INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after, reason)
  SELECT 'fix', 'late report', orders.key_hash(w.idempotency_key), w.id, jsonb_build_object('status', $2::text),
    '{"status": "pending"}', 'the broker has the order'
  FROM woken w WHERE $2::text = 'aborted')
SELECT pg_notify(cn_names.channel_orders_pending(), '') FROM woken;

-- name: fix_set_applied
UPDATE orders.fix_orders SET reports_applied = $4
WHERE session = $1 AND cl_ord_id = $2 AND outbox_id = $3 AND reports_applied < $4;

-- Forgets orders for which no report came in $1 seconds and which the broker works on no more; their reports go to the
-- archive. At most $2 orders.
-- name: fix_forget_orders
WITH old AS MATERIALIZED (
  SELECT f.session, f.cl_ord_id, f.outbox_id FROM orders.fix_orders f
  WHERE f.touched_at < now() - make_interval(secs => $1)
    AND NOT EXISTS (SELECT FROM orders.idempo_ledger l WHERE l.idempotency_key = f.idempotency_key AND orders.is_working(l))
  ORDER BY f.touched_at LIMIT $2),
forgotten AS (
  DELETE FROM orders.fix_orders f USING old o WHERE f.session = o.session AND f.cl_ord_id = o.cl_ord_id),
gone AS (
  DELETE FROM orders.fix_reports r USING old o WHERE r.session = o.session AND r.cl_ord_id = o.cl_ord_id
  RETURNING o.outbox_id, r.*)
INSERT INTO orders.fix_reports_archive (outbox_id, session, cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status, ord_rej_reason, last_qty,
  last_px, cum_qty, avg_px, transact_time, text, received_at)
SELECT g.outbox_id, g.session, g.cl_ord_id, g.exec_id, g.order_id, g.exec_type, g.exec_ref_id, g.ord_status, g.ord_rej_reason, g.last_qty,
  g.last_px, g.cum_qty, g.avg_px, g.transact_time, g.text, g.received_at
FROM gone g;

-- Forgets reports of the same age that belong to no order of ours.
-- name: fix_forget_reports
WITH gone AS (
  DELETE FROM orders.fix_reports r
  USING (SELECT o.session, o.cl_ord_id, o.exec_id FROM orders.fix_reports o
         WHERE o.received_at < now() - make_interval(secs => $1)
           AND NOT EXISTS (SELECT FROM orders.fix_orders f WHERE f.session = o.session AND f.cl_ord_id = o.cl_ord_id)
         ORDER BY o.received_at LIMIT $2) old
  WHERE r.session = old.session AND r.cl_ord_id = old.cl_ord_id AND r.exec_id = old.exec_id
  RETURNING NULL::bigint AS outbox_id, r.*)
INSERT INTO orders.fix_reports_archive (outbox_id, session, cl_ord_id, exec_id, order_id, exec_type, exec_ref_id, ord_status, ord_rej_reason, last_qty,
  last_px, cum_qty, avg_px, transact_time, text, received_at)
SELECT g.outbox_id, g.session, g.cl_ord_id, g.exec_id, g.order_id, g.exec_type, g.exec_ref_id, g.ord_status, g.ord_rej_reason, g.last_qty,
  g.last_px, g.cum_qty, g.avg_px, g.transact_time, g.text, g.received_at
FROM gone g;
