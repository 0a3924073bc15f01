-- Questions to a FIX broker, from `todoke orders reconcile` to the worker that has the session and back. A question names the
-- order; its content is read by the worker. The table holds some hundred rows at most.

-- Where the orders $1 went, and a question of the run $2 for each that can be asked about, as long as fewer than $3 wait, but
-- for the sessions $4. The session is the one that the order was written down for; the only one there is, where it never
-- was. Where another order has gone out with the same ClOrdID, that one is what the broker would tell of.
-- name: question_ask
WITH sent AS (
  SELECT t.outbox_id, s.broker_id
  FROM unnest($1::bigint[]) AS t (outbox_id)
    CROSS JOIN LATERAL (
      SELECT s.broker_id FROM orders.sends s WHERE s.outbox_id = t.outbox_id AND s.adapter = 'fix' AND s.broker_id IS NOT NULL
      ORDER BY s.claim_no DESC LIMIT 1) s),
placed AS MATERIALIZED (
  SELECT sent.outbox_id, sent.broker_id, f.outbox_id <> sent.outbox_id AS is_of_another,
    coalesce(f.session, (SELECT min(x.session) FROM orders.fix_sessions x HAVING count(*) = 1)) AS session
  FROM sent LEFT JOIN LATERAL (
    SELECT f.session, f.outbox_id
    FROM orders.fix_sessions x JOIN orders.fix_orders f ON f.session = x.session AND f.cl_ord_id = sent.broker_id
    ORDER BY f.outbox_id = sent.outbox_id DESC LIMIT 1) f ON true),
known AS MATERIALIZED (
  SELECT p.outbox_id, p.broker_id, p.session, coalesce(p.is_of_another, false) AS is_of_another,
    coalesce(x.owner IS NOT NULL AND x.leased_until > clock_timestamp(), false) AS has_owner
  FROM placed p LEFT JOIN orders.fix_sessions x ON x.session = p.session),
asked AS (
  INSERT INTO orders.fix_questions (session, cl_ord_id, outbox_id, asked_by)
  SELECT k.session, k.broker_id, k.outbox_id, $2 FROM known k
  WHERE k.has_owner AND NOT k.is_of_another AND k.session <> ALL ($4::text[])
    AND (SELECT count(*) FROM orders.fix_questions) < $3
  ORDER BY k.outbox_id
  RETURNING outbox_id)
SELECT k.outbox_id, coalesce(k.session, '') AS session, k.is_of_another, k.has_owner, a.outbox_id IS NOT NULL AS is_asked
FROM known k LEFT JOIN asked a ON a.outbox_id = k.outbox_id;

-- name: question_tell
SELECT pg_notify('orders_questions', '');

-- How many of a run wait.
-- name: question_count
SELECT count(*) AS waiting FROM orders.fix_questions WHERE asked_by = $1 AND answered_at IS NULL;

-- The answers of a run, which is done with them.
-- name: question_collect
DELETE FROM orders.fix_questions WHERE asked_by = $1
RETURNING outbox_id, answer, coalesce(is_taken, false) AS is_taken, executed_qty, coalesce(message, '') AS message;

-- The worker's: the orders that are asked about on its session, at most $2, as they stand in the outbox or in the archive,
-- each with all its questions: the broker is asked once for them. Runs take turns.
-- name: question_open
SELECT array_agg(q.id) AS ids, q.cl_ord_id, q.outbox_id, coalesce(o.order_request_json, a.order_request_json)::text AS document
FROM (SELECT w.id, w.cl_ord_id, w.outbox_id, row_number() OVER (PARTITION BY w.asked_by ORDER BY w.id) AS place
      FROM orders.fix_questions w WHERE w.session = $1 AND w.answered_at IS NULL) q
  LEFT JOIN orders.outbox_orders o ON o.id = q.outbox_id
  LEFT JOIN LATERAL (
    SELECT a.order_request_json FROM orders.outbox_orders_archive a WHERE a.id = q.outbox_id LIMIT 1) a ON o.id IS NULL
GROUP BY q.cl_ord_id, q.outbox_id, document
ORDER BY min(q.place), min(q.id) LIMIT $2;

-- Of questions that were there before the broker was asked, so that no answer is older than its question.
-- name: question_answer
UPDATE orders.fix_questions
SET answered_at = clock_timestamp(), answer = $2, is_taken = $3, executed_qty = $4, message = $5
WHERE id = ANY ($1::bigint[]) AND answered_at IS NULL
RETURNING pg_notify('orders_answers', asked_by);

-- What nobody waits for any more: older than $1 seconds.
-- name: question_sweep
DELETE FROM orders.fix_questions WHERE asked_at < now() - make_interval(secs => $1);
