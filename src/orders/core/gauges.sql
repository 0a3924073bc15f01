-- How orders stand, for health, metrics and operators.

-- The age of the oldest order that could be sent now, whether a worker has found that its time has come or not; the orders in
-- doubt (those that were aborted so, too, until they go to the archive); how many workers have shown a sign of life within $1
-- seconds; how many halts there are; the adapters of those workers; one that orders in doubt, or those of a worker that died,
-- need and no worker has.
-- name: gauges
SELECT
  coalesce(extract(epoch FROM now() - least(
    (SELECT coalesce(o.next_run_at, o.created_at) FROM orders.outbox_orders o
     WHERE o.status = 'pending' AND coalesce(o.next_run_at, o.created_at) <= now()
     ORDER BY coalesce(o.next_run_at, o.created_at), o.id LIMIT 1),
    (SELECT o.next_run_at FROM orders.outbox_orders o WHERE o.status = 'failed' AND o.next_run_at <= now()
     ORDER BY o.next_run_at, o.id LIMIT 1))), 0)::double precision AS oldest_pending,
  (SELECT count(*) FROM (SELECT FROM orders.outbox_orders o WHERE o.in_doubt LIMIT 100000) d) AS in_doubt,
  (SELECT count(*) FROM orders.workers w WHERE w.seen_at > now() - make_interval(secs => $1)) AS workers,
  (SELECT count(*) FROM orders.halts) AS halts,
  (SELECT coalesce(string_agg(DISTINCT w.adapter, ', ' ORDER BY w.adapter), '') FROM orders.workers w
   WHERE w.seen_at > now() - make_interval(secs => $1)) AS adapters,
  coalesce((SELECT tried.adapter FROM (
              SELECT o.adapter FROM (SELECT o.adapter, o.status FROM orders.outbox_orders o WHERE o.in_doubt LIMIT 100000) o
              WHERE o.status IN ('pending', 'sending', 'failed') AND o.adapter IS NOT NULL
              UNION ALL
              (SELECT w.adapter FROM orders.outbox_orders o JOIN orders.workers w ON w.worker = o.locked_by
               WHERE o.status = 'sending' LIMIT 100000)) tried
            WHERE NOT EXISTS (SELECT FROM orders.workers w
                              WHERE w.adapter = tried.adapter AND w.seen_at > now() - make_interval(secs => $1))
            LIMIT 1), '') AS orphaned;
