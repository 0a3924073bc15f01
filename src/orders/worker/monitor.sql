-- Which workers run.

-- Workers that died stay for a day, so that operators can see them, and as long as they hold an order: only their row
-- tells which broker may have it.
-- name: worker_seen
WITH swept AS (
  DELETE FROM orders.workers w WHERE w.worker <> $1 AND w.seen_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT FROM orders.outbox_orders o WHERE o.status = 'sending' AND o.locked_by = w.worker))
INSERT INTO orders.workers (worker, adapter, lease_sec, breaker) VALUES ($1, $2, $3, $4)
ON CONFLICT (worker) DO UPDATE SET seen_at = now(), lease_sec = $3, breaker = $4;

-- name: worker_gone
DELETE FROM orders.workers WHERE worker = $1;
