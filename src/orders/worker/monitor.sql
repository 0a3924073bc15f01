-- Which workers run.

-- Workers that died stay for a day, so that somebody can see that they did, and as long as an order is theirs: which
-- broker may have it is known by their row alone.
-- name: worker_seen
WITH swept AS (
  DELETE FROM orders.workers w WHERE w.worker <> $1 AND w.seen_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT FROM orders.outbox_orders o WHERE o.status = 'sending' AND o.locked_by = w.worker))
INSERT INTO orders.workers (worker, adapter, lease_sec, breaker) VALUES ($1, $2, $3, $4)
ON CONFLICT (worker) DO UPDATE SET seen_at = now(), lease_sec = $3, breaker = $4;

-- name: worker_gone
DELETE FROM orders.workers WHERE worker = $1;
