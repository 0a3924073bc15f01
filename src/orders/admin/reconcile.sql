-- `todoke orders reconcile`.

-- Orders from $2 on that went through the adapter $1, or through none yet, after the id $3, at most $4; those in the archive
-- as well.
-- name: reconcile_page
WITH o AS MATERIALIZED (
  (SELECT o.id, o.idempotency_key, o.order_request_json, o.request_digest, o.status, o.last_error_code, false AS archived,
     NULL AS executed_qty
   FROM orders.outbox_orders o WHERE o.id > $3 AND o.created_at >= $2 ORDER BY o.id LIMIT $4)
  UNION ALL
  (SELECT a.id, a.idempotency_key, a.order_request_json, a.request_digest, a.status, a.last_error_code, true,
     a.response_payload_json ->> 'executed_qty'
   FROM orders.outbox_orders_archive a WHERE a.id > $3 AND a.created_at >= $2 ORDER BY a.id LIMIT $4)
  ORDER BY id LIMIT $4)
SELECT o.id, orders.key_hash(o.idempotency_key) AS key_hash, o.idempotency_key, o.order_request_json::text AS document,
  o.status, coalesce(o.last_error_code = 'IDEMPOTENCY_CONFLICT', false) AS is_conflict, o.archived,
  CASE WHEN l.request_digest = o.request_digest THEN l.status END AS ledger_status,
  coalesce(o.executed_qty, l.response_payload_json ->> 'executed_qty') AS executed_qty, s.tries, s.others, s.successes,
  EXISTS (SELECT FROM orders.audit a WHERE a.outbox_id = o.id AND a.action LIKE 'settle%') AS by_hand
FROM o LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = o.idempotency_key
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE s.adapter = $1) AS tries, count(*) FILTER (WHERE s.adapter <> $1) AS others,
      count(*) FILTER (WHERE s.adapter = $1 AND s.outcome IN ('ok', 'FOUND')) AS successes
    FROM orders.sends s WHERE s.outbox_id = o.id) s
ORDER BY o.id;
