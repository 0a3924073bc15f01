-- Statements of the API. Its own session (accept, replay, wake_workers) sets orders.actor and reads by index only.

-- Accepts orders whose key neither table has; returns the keys that it accepted. The row of the outbox first, as everybody
-- locks; in the order of keys, so that two nodes with the same keys don't wait for each other in a circle. Ids follow the
-- lists, which are in the order of arrival: with orders.serialize_by they are the order of sending. (The session joins by
-- nested loops only, which keep that order.)
-- name: accept_orders
WITH numbered AS MATERIALIZED (
  SELECT nextval('orders.outbox_orders_id_seq') AS id, t.key, t.document, t.digest, t.trace_id
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS t (key, document, digest, trace_id)
  WHERE NOT EXISTS (SELECT FROM orders.idempo_ledger l WHERE l.idempotency_key = t.key)),
enqueued AS (
  INSERT INTO orders.outbox_orders (id, idempotency_key, order_request_json, request_digest, trace_id)
  SELECT n.id, n.key, n.document::jsonb, n.digest, n.trace_id FROM numbered n
  ORDER BY n.key COLLATE "C"
  ON CONFLICT (idempotency_key) DO NOTHING
  RETURNING idempotency_key, request_digest)
INSERT INTO orders.idempo_ledger (idempotency_key, request_digest)
SELECT e.idempotency_key, e.request_digest FROM enqueued e
RETURNING idempotency_key;

-- Keys that were posted again. Skips locked rows: a worker that settles an order sets last_seen_at, too.
-- name: mark_seen
UPDATE orders.idempo_ledger l SET last_seen_at = now()
FROM (SELECT s.idempotency_key FROM orders.idempo_ledger s WHERE s.idempotency_key = ANY ($1::text[])
      FOR UPDATE SKIP LOCKED) seen
WHERE l.idempotency_key = seen.idempotency_key;

-- Workers poll twice a second; this wakes them at once. Outside of the transaction that accepted the orders: NOTIFY would
-- slow down its commit.
-- name: wake_workers
SELECT pg_notify(cn_names.channel_orders_pending(), '');

-- For clients that wait at other nodes.
-- name: tell_settled
SELECT pg_notify(cn_names.channel_orders_settled(), '');

-- The states of keys. A finished row that was archived is shown as long as its ledger row lives.
-- name: read_states
SELECT k.key, coalesce(l.request_digest, o.request_digest) AS request_digest,
  coalesce(o.status, a.status,
           CASE l.status WHEN 'succeeded' THEN 'succeeded' WHEN 'failed' THEN 'aborted' ELSE 'pending' END) AS status,
  coalesce(o.attempts, a.attempts, 0) AS attempts,
  CASE WHEN o.status IN ('pending', 'failed') THEN o.next_run_at END AS next_run_at,
  CASE WHEN o.id IS NOT NULL THEN o.last_error_code ELSE a.last_error_code END AS last_error_code,
  coalesce(o.in_doubt, a.in_doubt, false) AS in_doubt,
  -- An order that was requeued is not settled, although its ledger says `failed` until it is claimed.
  CASE WHEN l.status = 'succeeded' OR coalesce(o.status, 'aborted') = 'aborted' THEN l.http_status END AS http_status,
  CASE WHEN l.status = 'succeeded' OR coalesce(o.status, 'aborted') = 'aborted' THEN l.response_payload_json END AS result
FROM unnest($1::text[]) AS k (key)
LEFT JOIN LATERAL (SELECT * FROM orders.idempo_ledger i WHERE i.idempotency_key = k.key LIMIT 1) l ON true
LEFT JOIN LATERAL (SELECT * FROM orders.outbox_orders i WHERE i.idempotency_key = k.key LIMIT 1) o ON true
LEFT JOIN LATERAL (
  SELECT * FROM orders.outbox_orders_archive i
  WHERE o.id IS NULL AND i.idempotency_key = l.idempotency_key AND i.request_digest = l.request_digest
  ORDER BY i.id DESC LIMIT 1) a ON true
WHERE l.idempotency_key IS NOT NULL OR o.id IS NOT NULL;

-- Open orders in doubt, at most $1.
-- name: count_in_doubt
SELECT count(*) FROM (SELECT FROM orders.outbox_orders WHERE in_doubt AND status IN ('pending', 'sending', 'failed')
                      LIMIT $1) o;
