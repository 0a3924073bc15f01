-- Archives finished orders and purges settled keys. Workers share these: one at a time does a page of each.

-- A page of the outbox from id $1 on, and what of it has been finished for long enough: $3 seconds with success, $4
-- aborted. Rows that are younger than $3 can't be due, so a pass ends at the first of them; no index on the time of the
-- last change is needed, which would cost every heartbeat its HOT update.
-- name: archive_orders
WITH page AS MATERIALIZED (
  SELECT o.id, o.created_at FROM orders.outbox_orders o
  WHERE o.id > $1 AND (SELECT pg_try_advisory_xact_lock(cn_names.lock_archive())) ORDER BY o.id LIMIT $2),
gone AS (
  DELETE FROM orders.outbox_orders o USING page p
  WHERE o.id = p.id AND p.created_at < now() - make_interval(secs => $3)
    AND (o.status = 'succeeded' AND o.updated_at < now() - make_interval(secs => $3)
      OR o.status = 'aborted' AND o.updated_at < now() - make_interval(secs => $4))
  RETURNING o.*),
moved AS (
  INSERT INTO orders.outbox_orders_archive (id, idempotency_key, order_request_json, request_digest, status, attempts,
    last_error_code, last_error_msg, created_at, updated_at, expires_at, claim_no, in_doubt, adapter, trace_id)
  SELECT id, idempotency_key, order_request_json, request_digest, status, attempts, last_error_code, last_error_msg,
    created_at, updated_at, expires_at, claim_no, in_doubt, adapter, trace_id
  FROM gone)
SELECT coalesce(max(p.id), 0) AS last_id, count(*) AS looked_at,
  coalesce(bool_or(p.created_at >= now() - make_interval(secs => $3)), false) AS met_young, (SELECT count(*) FROM gone) AS moved
FROM page p;

-- A page of the ledger after ($1, $2). A settled row goes when it has expired and its outbox row has gone: as long as
-- that one is there, a new order of the same key would be refused by its index. It stays while the broker works on the order:
-- fills may come, and a new order of that key would be taken for the old one. Its result goes to the archived order, which was
-- archived after the ledger had first seen it: older months are not looked at.
-- name: purge_ledger
WITH page AS MATERIALIZED (
  SELECT l.idempotency_key, l.first_seen_at FROM orders.idempo_ledger l
  WHERE l.first_seen_at < now() - make_interval(secs => $4) AND l.first_seen_at >= $1
    AND (l.first_seen_at, l.idempotency_key) > ($1, $2) AND (SELECT pg_try_advisory_xact_lock(cn_names.lock_ledger()))
  ORDER BY l.first_seen_at, l.idempotency_key LIMIT $3),
gone AS (
  DELETE FROM orders.idempo_ledger l USING page p
  WHERE l.idempotency_key = p.idempotency_key AND l.status IN ('succeeded', 'failed')
    AND coalesce(l.expires_at, l.last_seen_at + make_interval(secs => $4)) < now()
    AND NOT EXISTS (SELECT FROM orders.outbox_orders o WHERE o.idempotency_key = l.idempotency_key)
    AND NOT orders.is_working(l)
  RETURNING l.*),
kept AS (
  UPDATE orders.outbox_orders_archive a
  SET http_status = g.http_status, result_digest = g.result_digest, response_payload_json = g.response_payload_json
  FROM gone g
  WHERE a.idempotency_key = g.idempotency_key AND a.request_digest = g.request_digest AND a.archived_at >= g.first_seen_at)
SELECT p.first_seen_at, p.idempotency_key, count(*) OVER () AS looked_at, (SELECT count(*) FROM gone) AS purged
FROM page p ORDER BY p.first_seen_at DESC, p.idempotency_key DESC LIMIT 1;

-- name: ensure_order_partitions
SELECT orders.ensure_partitions(now() + interval '1 month');

-- name: old_order_partitions
SELECT orders.old_partitions($1::integer);

-- name: drop_old_order_partition
SELECT orders.drop_old_partition($1);

-- At most $2 orders of the paper broker's book.
-- name: forget_paper_orders
DELETE FROM orders.paper_book
WHERE (broker_id, outbox_id) IN (SELECT broker_id, outbox_id FROM orders.paper_book
                                 WHERE executed_at < now() - make_interval(months => $1::integer) LIMIT $2);
