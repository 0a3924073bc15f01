-- The operator's actions on orders. Each change and its audit row are one transaction; rows are locked in the order
-- outbox, ledger.

-- name: act_as
SELECT set_config('orders.actor', $1, true);

-- The newest first, of those that match the filter ($1 to $6 of orders.matches).
-- name: admin_list
SELECT o.id, orders.key_hash(o.idempotency_key) AS key_hash, o.status, o.attempts, o.in_doubt,
  coalesce(o.last_error_code, '') AS code, extract(epoch FROM now() - o.created_at)::double precision AS age,
  coalesce(extract(epoch FROM o.next_run_at - now()), 0)::double precision AS due_in, coalesce(o.locked_by, '') AS locked_by,
  coalesce(o.adapter, '') AS adapter
FROM orders.outbox_orders o
WHERE orders.matches(o, $1, $2, $3, $4, $5, $6) ORDER BY o.id DESC LIMIT $7;

-- Requeues the newest of those that match the filter, as requeue_order does with one; orders in doubt only where the
-- filter asks for them. Skips rows that somebody has locked, and those whose key belongs to another content.
-- name: requeue_matching
WITH picked AS MATERIALIZED (
  SELECT o.id, orders.audited(o) AS before FROM orders.outbox_orders o
  WHERE orders.matches(o, $1, $2, $3, $4, $5, $6) AND o.status IN ('aborted', 'failed') AND o.in_doubt = $2
    AND NOT EXISTS (SELECT FROM orders.idempo_ledger l
                    WHERE l.idempotency_key = o.idempotency_key AND l.request_digest <> o.request_digest)
  ORDER BY o.id DESC LIMIT $7 FOR UPDATE SKIP LOCKED),
requeued AS (
  UPDATE orders.outbox_orders o SET status = 'pending', attempts = 0, last_error_code = NULL, last_error_msg = NULL,
    next_run_at = NULL, updated_at = now()
  FROM picked p WHERE o.id = p.id
  RETURNING o.id, o.idempotency_key, p.before, orders.audited(o) AS after),
audited AS (
  INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after, reason)
  SELECT $8, 'requeue', orders.key_hash(r.idempotency_key), r.id, r.before, r.after, $9 FROM requeued r)
SELECT r.id FROM requeued r ORDER BY r.id;

-- Orders in doubt that a requeue without --in-doubt skips.
-- name: count_doubtful
SELECT count(*) FROM orders.outbox_orders o
WHERE o.in_doubt AND o.status IN ('aborted', 'failed') AND orders.matches(o, $1, $2, $3, $4, $5, $6);

-- By key or, where $1 is a number, by id; the outbox before the archive, and there the newest.
-- name: admin_find
SELECT f.id FROM (
  SELECT o.id, 1 AS place, o.idempotency_key = $1 AS is_key FROM orders.outbox_orders o
  WHERE o.idempotency_key = $1 OR o.id = CASE WHEN $1 ~ '^[0-9]{1,18}$' THEN $1::bigint END
  UNION ALL
  SELECT a.id, 2, a.idempotency_key = $1 FROM orders.outbox_orders_archive a
  WHERE a.idempotency_key = $1 OR a.id = CASE WHEN $1 ~ '^[0-9]{1,18}$' THEN $1::bigint END) f
ORDER BY f.is_key DESC, f.place, f.id DESC LIMIT 1;

-- By the beginning of the key's hash. Reads the whole outbox: a second or two for a million orders.
-- name: admin_find_hash
SELECT o.id FROM orders.outbox_orders o WHERE starts_with(orders.key_hash(o.idempotency_key), $1) LIMIT 2;

-- An order of the outbox or of the archive. The archive's result is the order's own; the ledger may have a later order's.
-- name: admin_show
SELECT o.id, o.idempotency_key, orders.key_hash(o.idempotency_key) AS key_hash, o.status, o.attempts, o.claim_no,
  o.in_doubt, coalesce(o.last_error_code, '') AS code, coalesce(o.last_error_msg, '') AS message,
  coalesce(o.locked_by, '') AS locked_by, coalesce(o.locked_at::text, '') AS locked_at, o.created_at::text AS created_at,
  o.updated_at::text AS updated_at, coalesce(o.next_run_at::text, '') AS next_run_at,
  coalesce(o.archived_at::text, '') AS archived_at, o.request_digest,
  o.order_request_json::text AS document, coalesce(l.status, '(none)') AS ledger_status,
  coalesce(o.http_status, l.http_status)::text AS http_status,
  coalesce(o.response_payload_json, l.response_payload_json)::text AS result,
  coalesce(l.expires_at::text, '') AS expires_at
FROM (
    SELECT id, idempotency_key, status, attempts, claim_no, in_doubt, last_error_code, last_error_msg, locked_by, locked_at,
      created_at, updated_at, next_run_at, NULL::timestamptz AS archived_at, request_digest, order_request_json,
      NULL::integer AS http_status, NULL::json AS response_payload_json
    FROM orders.outbox_orders WHERE id = $1
    UNION ALL
    SELECT id, idempotency_key, status, attempts, claim_no, in_doubt, last_error_code, last_error_msg, NULL, NULL,
      created_at, updated_at, NULL, archived_at, request_digest, order_request_json, http_status, response_payload_json
    FROM orders.outbox_orders_archive WHERE id = $1) o
  LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = o.idempotency_key
    AND (o.archived_at IS NULL OR l.request_digest = o.request_digest)
LIMIT 1;

-- name: admin_tries
SELECT claim_no, began_at::text, ended_at::text, outcome, adapter, coalesce(broker_ref, ''), worker, fenced,
  coalesce(note, '') AS note
FROM orders.sends WHERE outbox_id = $1 ORDER BY claim_no, began_at LIMIT $2;

-- name: admin_audit_of
SELECT at::text, actor, action, coalesce(reason, '') FROM orders.audit WHERE outbox_id = $1 ORDER BY id LIMIT $2;

-- Locks the row, then its ledger row (lock_ledger). `is_live`: a worker holds it by a lease of $2 seconds.
-- name: lock_order
SELECT o.idempotency_key, o.status, o.attempts, o.in_doubt, o.order_request_json::text AS document,
  o.status = 'sending' AND o.locked_at IS NOT NULL AND o.locked_at >= now() - make_interval(secs => $2) AS is_live,
  orders.audited(o)::text AS before, coalesce(o.adapter, '') AS adapter
FROM orders.outbox_orders o WHERE o.id = $1 FOR UPDATE;

-- name: lock_ledger
SELECT l.status, l.request_digest = o.request_digest AS is_same
FROM orders.outbox_orders o JOIN orders.idempo_ledger l ON l.idempotency_key = o.idempotency_key WHERE o.id = $1
FOR UPDATE OF l;

-- name: requeue_order
UPDATE orders.outbox_orders SET status = 'pending', attempts = 0, last_error_code = NULL, last_error_msg = NULL,
  next_run_at = NULL, updated_at = now()
WHERE id = $1;

-- The claim number fences its worker. That worker may have sent the order, so the order stays with its adapter.
-- name: release_order
UPDATE orders.outbox_orders o SET status = 'pending', locked_by = NULL, locked_at = NULL, claim_no = claim_no + 1,
  in_doubt = true, adapter = coalesce(adapter, (SELECT w.adapter FROM orders.workers w WHERE w.worker = o.locked_by)),
  updated_at = now()
WHERE id = $1;

-- The end of an order by hand: $2 status, $3 code, $4 message, $5 in doubt. Fences whoever holds it.
-- name: end_order
UPDATE orders.outbox_orders o SET status = $2, last_error_code = $3, last_error_msg = $4, in_doubt = $5,
  adapter = coalesce(adapter, (SELECT w.adapter FROM orders.workers w WHERE w.worker = o.locked_by)), locked_by = NULL,
  locked_at = NULL, next_run_at = NULL, claim_no = claim_no + 1, updated_at = now()
WHERE id = $1;

-- name: end_ledger
INSERT INTO orders.idempo_ledger AS l (idempotency_key, request_digest, status, http_status, result_digest,
  response_payload_json, expires_at)
SELECT o.idempotency_key, o.request_digest, $2, $3, $4, $5::text::json, now() + interval '48 hours'
FROM orders.outbox_orders o WHERE o.id = $1
ON CONFLICT (idempotency_key) DO UPDATE SET status = excluded.status, http_status = excluded.http_status,
  result_digest = excluded.result_digest, response_payload_json = excluded.response_payload_json,
  expires_at = excluded.expires_at, last_seen_at = now();

-- name: audit_change
INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after, reason)
SELECT $1, $2, orders.key_hash(o.idempotency_key), o.id, $4::text::jsonb, orders.audited(o), $5
FROM orders.outbox_orders o WHERE o.id = $3;

-- name: audit_reveal
INSERT INTO orders.audit (actor, action, key_hash, outbox_id) VALUES ($1, 'reveal', $2, $3);

-- name: audit_action
INSERT INTO orders.audit (actor, action, after, reason) VALUES ($1, $2, $3::text::jsonb, $4);

-- name: tell_workers
SELECT pg_notify(cn_names.channel_orders_pending(), '');

-- A second halt never weakens the first: a halt that refuses new orders keeps refusing them.
-- name: upsert_halt
INSERT INTO orders.halts AS h (adapter, instrument, intake_refused, halted_by, reason) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (adapter, instrument) DO UPDATE SET intake_refused = h.intake_refused OR excluded.intake_refused,
  halted_by = excluded.halted_by, reason = coalesce(excluded.reason, h.reason)
RETURNING intake_refused;

-- name: remove_halt
DELETE FROM orders.halts WHERE adapter = $1 AND instrument = $2 RETURNING adapter;

-- name: list_halts
SELECT adapter, instrument, intake_refused, halted_by, halted_at::text, coalesce(reason, '') FROM orders.halts
ORDER BY adapter, instrument LIMIT $1;

-- name: order_counts
SELECT s.status, coalesce(c.count, 0) FROM unnest(ARRAY['pending', 'sending', 'failed', 'succeeded', 'aborted']) WITH ORDINALITY
  AS s (status, n) LEFT JOIN (SELECT status, count(*) FROM orders.outbox_orders GROUP BY 1) c ON c.status = s.status
ORDER BY s.n;

-- name: list_workers
SELECT worker, adapter, extract(epoch FROM now() - seen_at)::double precision, breaker FROM orders.workers
ORDER BY worker LIMIT $1;
