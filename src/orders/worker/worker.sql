-- The worker's statements on the outbox and the ledger. Sessions that run them set orders.actor and turn off plans other
-- than nested loops over indexes: the statistics of a queue are always those of a moment ago.
--
-- Lists of rows are locked in the order of their ids, one index lookup for each: as a plain join the planner may put the list
-- inside and go through all of it for every row (1,000 rows: 1.5 s instead of 5 ms). Two lists are compared by NOT IN, or by
-- IN as part of an OR or of IS TRUE, which Postgres hashes: a plain IN becomes a join of the two (140 ms instead of 1 ms).
--
-- No statement waits for an outbox row that somebody else has locked, such as an operator in an open transaction: the other
-- rows would wait with it. It leaves that row out, and the worker asks again later.
--
-- MATERIALIZED before an UPDATE that reads a list: a row may have changed between the beginning of the statement and its lock (a
-- heartbeat); Postgres then checks its newest version again together with the row of the list that belongs to it. In a list
-- that is part of the plan (UNION ALL) it can't find that row, and would leave the order out.

-- Turns rows whose time has come into pending ones; next_run_at stays and is their place in the line.
-- name: promote_due
UPDATE orders.outbox_orders o SET status = 'pending', updated_at = now()
FROM (SELECT id FROM orders.outbox_orders WHERE status = 'failed' AND next_run_at <= now()
      ORDER BY next_run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED) due
WHERE o.id = due.id;

-- One worker at a time looks for the first of each instrument: two with different snapshots could each find one.
-- name: lock_instruments
SELECT pg_advisory_xact_lock(cn_names.lock_instruments());

-- Rows with what the ledger says of their key. A settled failure of a pending row means that it was requeued: its
-- ledger row is open again, with an audit row; where somebody has locked the ledger row, a later claim finds the row.
--
-- $5 (orders.serialize_by = instrument): of each instrument only the first that is open, and none of an instrument that is
-- being sent; two index reads for each instrument with open orders, however many those are. The half that $5 leaves out is
-- not executed. Behind 200,000 rows that wait: 0.53 ms with the commit, 1.09 times of alone (bench/orders). With 100
-- instruments and 100,000 orders of which no statistics were taken, EXPLAIN (ANALYZE): 1 ms, in order 2 ms.
-- name: claim
WITH RECURSIVE heads AS (
  (SELECT coalesce(o.instrument, '') AS instrument, o.id FROM orders.outbox_orders o
   WHERE o.status IN ('pending', 'sending', 'failed') ORDER BY coalesce(o.instrument, ''), o.id LIMIT 1)
  UNION ALL
  SELECT n.instrument, n.id FROM heads h CROSS JOIN LATERAL (
    SELECT coalesce(o.instrument, '') AS instrument, o.id FROM orders.outbox_orders o
    WHERE o.status IN ('pending', 'sending', 'failed') AND coalesce(o.instrument, '') > h.instrument
    ORDER BY coalesce(o.instrument, ''), o.id LIMIT 1) n),
busy AS MATERIALIZED (
  SELECT coalesce(o.instrument, '') AS instrument FROM orders.outbox_orders o WHERE o.status = 'sending' ORDER BY o.id),
in_order AS MATERIALIZED (
  -- The empty text keeps the planner from reading the index of pending rows, all of them, instead of the one row.
  SELECT o.id, coalesce(o.next_run_at, o.created_at) AS due, o.idempotency_key, o.request_digest
  FROM heads h JOIN orders.outbox_orders o ON o.id = h.id
  WHERE $5 AND o.status || '' = 'pending' AND coalesce(o.next_run_at, o.created_at) <= now()
    AND (o.adapter IS NULL OR o.adapter = $3) AND h.instrument <> ALL ($4::text[])
    AND NOT EXISTS (SELECT FROM busy b WHERE b.instrument = h.instrument)
  ORDER BY coalesce(o.next_run_at, o.created_at), o.id LIMIT $1 FOR UPDATE OF o SKIP LOCKED),
as_due AS MATERIALIZED (
  SELECT o.id, coalesce(o.next_run_at, o.created_at) AS due, o.idempotency_key, o.request_digest
  FROM orders.outbox_orders o
  WHERE NOT $5 AND o.status = 'pending' AND coalesce(o.next_run_at, o.created_at) <= now()
    AND (o.adapter IS NULL OR o.adapter = $3) AND coalesce(o.instrument, '') <> ALL ($4::text[])
  ORDER BY coalesce(o.next_run_at, o.created_at), o.id LIMIT $1 FOR UPDATE SKIP LOCKED),
picked AS MATERIALIZED (SELECT * FROM in_order UNION ALL SELECT * FROM as_due),
read AS MATERIALIZED (
  SELECT p.id, p.due, p.idempotency_key, l.status AS ledger_status, l.request_digest AS ledger_digest,
    coalesce(l.status = 'failed' AND l.request_digest = p.request_digest, false) AS was_requeued
  FROM picked p LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = p.idempotency_key),
reopenable AS MATERIALIZED (
  SELECT l.idempotency_key FROM read r CROSS JOIN LATERAL (
    SELECT l.idempotency_key FROM orders.idempo_ledger l
    WHERE l.idempotency_key = r.idempotency_key AND l.status = 'failed' FOR UPDATE SKIP LOCKED) l
  WHERE r.was_requeued),
taken AS MATERIALIZED (
  SELECT r.* FROM read r
  WHERE NOT r.was_requeued OR EXISTS (SELECT FROM reopenable l WHERE l.idempotency_key = r.idempotency_key)),
claimed AS (
  UPDATE orders.outbox_orders o
  SET status = 'sending', locked_by = $2, locked_at = now(), updated_at = now(), claim_no = o.claim_no + 1
  FROM taken t WHERE o.id = t.id
  RETURNING t.due, t.ledger_status, t.ledger_digest, t.was_requeued, o.id, o.claim_no, o.attempts, o.in_doubt,
    o.idempotency_key, o.request_digest, o.order_request_json, o.created_at, o.trace_id, o.last_error_code, o.last_error_msg,
    o.key_was_taken),
reopened AS (
  UPDATE orders.idempo_ledger l SET status = 'accepted', result_digest = NULL, http_status = NULL,
    response_payload_json = NULL, expires_at = NULL, last_seen_at = now()
  FROM reopenable r WHERE l.idempotency_key = r.idempotency_key),
audited AS (
  INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after, reason)
  SELECT $2, 'reopen ledger', orders.key_hash(c.idempotency_key), c.id, '{"status": "failed"}', '{"status": "accepted"}',
    'the order was requeued'
  FROM claimed c WHERE c.was_requeued)
SELECT c.id, c.claim_no, c.attempts, c.in_doubt, c.idempotency_key, c.request_digest, c.order_request_json, c.created_at,
  c.trace_id, c.last_error_code, c.last_error_msg, c.ledger_status, c.ledger_digest, now() AS claimed_at, c.key_was_taken
FROM claimed c ORDER BY c.due, c.id;

-- Takes over rows whose lease of $3 seconds has lapsed. Each counts as a failed try ($4: the budget) and is in doubt;
-- the journal notes the try of the worker that vanished, whose last sign of life is its began_at. Not those that this
-- worker itself still has ($6): it settles them when the database lets it; nor those of another adapter's worker, whose
-- broker may have them; nor, while a worker with a longer lease shows signs of life ($7 seconds), those that are its
-- own by that.
-- name: take_over
WITH picked AS MATERIALIZED (
  SELECT o.id, o.locked_by, coalesce(o.locked_at, o.updated_at) AS locked_at, o.claim_no FROM orders.outbox_orders o
  WHERE o.status = 'sending' AND (o.locked_at IS NULL OR o.locked_at < now() - make_interval(secs => $3))
    AND (o.adapter IS NULL OR o.adapter = $5) AND o.id <> ALL ($6::bigint[])
    AND NOT EXISTS (
      SELECT FROM orders.workers w WHERE w.worker = o.locked_by AND (w.adapter <> $5
        OR w.seen_at > now() - make_interval(secs => $7) AND o.locked_at >= now() - make_interval(secs => w.lease_sec)))
  ORDER BY o.id LIMIT $1 FOR UPDATE SKIP LOCKED),
taken AS (
  UPDATE orders.outbox_orders o
  SET locked_by = $2, locked_at = now(), updated_at = now(), claim_no = o.claim_no + 1, in_doubt = true,
    adapter = $5, attempts = least(o.attempts + 1, greatest($4, o.attempts)), last_error_code = 'LEASE_EXPIRED',
    last_error_msg = 'the worker vanished'
  FROM picked p WHERE o.id = p.id
  RETURNING o.id, o.claim_no, o.attempts, o.in_doubt, o.idempotency_key, o.request_digest, o.order_request_json,
    o.created_at, o.trace_id, o.last_error_code, o.last_error_msg, o.key_was_taken, p.locked_by AS old_worker, p.locked_at AS old_locked_at,
    p.claim_no AS old_claim_no),
written AS (
  INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, began_at, ended_at, outcome, worker)
  SELECT t.id, orders.key_hash(t.idempotency_key), t.old_claim_no,
    coalesce((SELECT w.adapter FROM orders.workers w WHERE w.worker = t.old_worker), $5), t.old_locked_at, now(),
    'LEASE_EXPIRED', coalesce(t.old_worker, '')
  FROM taken t)
SELECT t.id, t.claim_no, t.attempts, t.in_doubt, t.idempotency_key, t.request_digest, t.order_request_json, t.created_at,
  t.trace_id, t.last_error_code, t.last_error_msg, l.status AS ledger_status, l.request_digest AS ledger_digest,
  now() AS claimed_at, t.key_was_taken
FROM taken t LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = t.idempotency_key;

-- Renews leases. Returns, by the place in the list: true for each lease that it renewed, false for one that runs on
-- because somebody has locked the row. A row that it does not return is not this worker's.
-- name: heartbeat
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS t (id, claim_no, n) ORDER BY id),
held AS MATERIALIZED (
  SELECT a.n, o.id FROM asked a CROSS JOIN LATERAL (
    SELECT o.id FROM orders.outbox_orders o
    WHERE o.id = a.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = a.claim_no FOR UPDATE SKIP LOCKED) o),
renewed AS (
  UPDATE orders.outbox_orders o SET locked_at = now(), updated_at = now() FROM held h WHERE o.id = h.id RETURNING h.n)
SELECT n, true AS renewed FROM renewed
UNION ALL
SELECT a.n, false FROM asked a
WHERE a.n NOT IN (SELECT h.n FROM held h) AND EXISTS (
  SELECT FROM orders.outbox_orders o
  WHERE o.id = a.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = a.claim_no);

-- Settles a batch and returns a fate for each ticket, by its place in the list (src/queue/fate.hpp has the fates). The
-- `verdict` on a ticket is one of
--
--   succeeded, aborted  the order is over: the ledger is written (or made, where it is missing), then the row. A ledger that
--                       has succeeded meanwhile, or has another content, is not written: the row follows it.
--   failed              the row waits for its next try. The ledger stays as it is.
--   pending             the row is given back as it was before the claim.
--   ledger              the row follows its ledger, which was settled before: succeeded or aborted, and aborted as a conflict
--                       where the ledger has another content. One whose ledger is open again is given back.
--
--   asked --> held: ours, and locked here --> written: the ledger --> last_word: what the ledger said of those that did not
--     |         |                                                       write it; one that is missing is created
--     |         +--> ruled: what each row becomes --> settled, journal
--     +--> not_held: neither ours nor locked by somebody else --> journal (fenced)
--
-- Fates: settled; lost, for a row that is not this worker's any more. A ticket of which nothing is returned is locked: its row
-- is this worker's, but somebody else has locked it, or its ledger has changed since the statement began. Nothing is written
-- for it. Where an answer was lost and the worker asks again, the journal tells that its own settling let the row go: settled.
-- The journal is searched for a month: an outage of the database is not longer, and older partitions are not opened.
--
-- An order in doubt stays with the adapter that has tried it: another broker can't tell what became of it.
--
-- 1 row: 0.5 ms, 100 rows: 4 ms, 1,000 rows: 60 ms, without the commit, on two busy cores (EXPLAIN (ANALYZE, BUFFERS): 34 pages
-- for each row, all of them by index). Not a function of the server: Postgres 15 plans the body of an SQL function anew at each
-- call (2 ms here), and a change of it would need a migration.
-- name: settle
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::bigint[],
      $10::boolean[], $11::boolean[], $12::integer[], $13::text[], $14::text[], $15::text[], $16::text[], $17::timestamptz[],
      $18::timestamptz[], $19::text[], $20::text[], $21::text[]) WITH ORDINALITY
    AS t (id, claim_no, verdict, counted, error_code, error_msg, delay_ms, in_doubt, key_was_taken, http_status, result_digest,
          payload, key_hash, broker_id, began_at, ended_at, outcome, broker_ref, note, n)
  ORDER BY id),
held AS MATERIALIZED (
  SELECT a.*, o.idempotency_key, o.request_digest, o.attempts, o.last_error_code, o.last_error_msg, o.next_run_at,
    o.in_doubt AS was_in_doubt, o.key_was_taken AS key_had_been_taken, o.adapter
  FROM asked a CROSS JOIN LATERAL (
    SELECT * FROM orders.outbox_orders o
    WHERE o.id = a.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = a.claim_no FOR UPDATE SKIP LOCKED) o),
written AS (
  UPDATE orders.idempo_ledger l
  SET status = CASE h.verdict WHEN 'succeeded' THEN 'succeeded' ELSE 'failed' END, http_status = h.http_status,
    result_digest = h.result_digest, response_payload_json = h.payload::json, last_seen_at = now(),
    expires_at = now() + interval '48 hours'
  FROM held h
  WHERE h.verdict IN ('succeeded', 'aborted') AND l.idempotency_key = h.idempotency_key AND l.status <> 'succeeded'
    AND l.request_digest = h.request_digest
  RETURNING l.idempotency_key),
last_word AS MATERIALIZED (
  SELECT h.*, l.status AS ledger_status, l.request_digest = h.request_digest AS is_same,
    l.response_payload_json ->> 'reason_code' AS ledger_code
  FROM held h LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = h.idempotency_key
  WHERE h.verdict = 'ledger' OR h.verdict IN ('succeeded', 'aborted')
    AND h.idempotency_key NOT IN (SELECT w.idempotency_key FROM written w)),
created AS (
  INSERT INTO orders.idempo_ledger (idempotency_key, request_digest, status, http_status, result_digest,
    response_payload_json, expires_at)
  SELECT idempotency_key, request_digest, CASE verdict WHEN 'succeeded' THEN 'succeeded' ELSE 'failed' END, http_status,
    result_digest, payload::json, now() + interval '48 hours'
  FROM last_word WHERE verdict <> 'ledger' AND ledger_status IS NULL
  ON CONFLICT (idempotency_key) DO NOTHING
  RETURNING idempotency_key),
ruled AS MATERIALIZED (
  SELECT n, id, verdict AS status, attempts + counted AS attempts, error_code, left(error_msg, 512) AS error_msg,
    now() + delay_ms * interval '1 millisecond' AS next_run_at, in_doubt, key_had_been_taken OR key_was_taken AS key_was_taken,
    CASE WHEN in_doubt THEN $2 ELSE adapter END AS adapter, false AS follows
  FROM held
  WHERE verdict = 'failed' OR idempotency_key IN (SELECT w.idempotency_key FROM written w)
    OR idempotency_key IN (SELECT c.idempotency_key FROM created c)
  UNION ALL
  SELECT n, id, CASE WHEN is_same AND ledger_status = 'succeeded' THEN 'succeeded' ELSE 'aborted' END, attempts,
    CASE WHEN NOT is_same THEN 'IDEMPOTENCY_CONFLICT' WHEN ledger_status = 'failed' THEN coalesce(ledger_code, last_error_code) END,
    CASE WHEN NOT is_same THEN 'the key belongs to an order with another content' END,
    NULL, was_in_doubt AND NOT (is_same AND ledger_status = 'succeeded'), key_had_been_taken, adapter, true
  FROM last_word WHERE NOT is_same OR ledger_status = 'succeeded' OR ledger_status = 'failed' AND verdict = 'ledger'
  UNION ALL
  SELECT n, id, 'pending', attempts, last_error_code, last_error_msg, next_run_at, was_in_doubt, key_had_been_taken, adapter, false
  FROM held h
  WHERE verdict = 'pending' OR verdict = 'ledger' AND h.n IN (
    SELECT w.n FROM last_word w WHERE w.ledger_status IS NULL OR w.is_same AND w.ledger_status = 'accepted')),
settled AS (
  UPDATE orders.outbox_orders o
  SET status = r.status, attempts = r.attempts, last_error_code = r.error_code, last_error_msg = r.error_msg,
    next_run_at = r.next_run_at, in_doubt = r.in_doubt, key_was_taken = r.key_was_taken, adapter = r.adapter,
    locked_by = NULL, locked_at = NULL, updated_at = now()
  FROM ruled r WHERE o.id = r.id
  RETURNING r.n, r.follows, o.status, o.attempts, o.last_error_code),
not_held AS MATERIALIZED (
  SELECT a.*, s.fenced FROM asked a LEFT JOIN LATERAL (
    SELECT s.fenced FROM orders.sends s
    WHERE s.outbox_id = a.id AND s.claim_no = a.claim_no AND s.worker = $1 AND s.outcome <> 'LEASE_EXPIRED'
      AND s.written_at > now() - interval '31 days' LIMIT 1) s ON true
  WHERE a.n NOT IN (SELECT h.n FROM held h) AND NOT EXISTS (
    SELECT FROM orders.outbox_orders o
    WHERE o.id = a.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = a.claim_no)),
journal AS (
  INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, broker_id, began_at, ended_at, outcome, broker_ref,
    note, worker, fenced)
  SELECT a.id, a.key_hash, a.claim_no, $2, a.broker_id, a.began_at, a.ended_at, a.outcome, a.broker_ref, a.note, $1, false
  FROM asked a WHERE a.outcome IS NOT NULL AND (a.n IN (SELECT r.n FROM ruled r)) IS TRUE
  UNION ALL
  SELECT a.id, a.key_hash, a.claim_no, $2, a.broker_id, a.began_at, a.ended_at, a.outcome, a.broker_ref, a.note, $1, true
  FROM not_held a WHERE a.outcome IS NOT NULL AND a.fenced IS NULL)
SELECT n, true AS settled, follows, status, attempts, last_error_code FROM settled
UNION ALL
SELECT n, fenced IS FALSE, false, NULL, NULL, NULL FROM not_held;

-- Rows that this worker has claimed without knowing it. One that is locked is left to its lease, and so is one that was
-- taken over with a settled failure in the ledger: pending, it would count as requeued.
-- name: give_back_unknown
WITH unknown AS MATERIALIZED (
  SELECT o.id FROM orders.outbox_orders o WHERE o.status = 'sending' AND o.locked_by = $1 AND o.id <> ALL ($2::bigint[])
    AND NOT EXISTS (SELECT FROM orders.idempo_ledger l WHERE l.idempotency_key = o.idempotency_key AND l.status = 'failed'
                    AND l.request_digest = o.request_digest)
  ORDER BY o.id FOR UPDATE SKIP LOCKED)
UPDATE orders.outbox_orders o SET status = 'pending', locked_by = NULL, locked_at = NULL, updated_at = now()
FROM unknown u WHERE o.id = u.id;

-- Takes attempts back, also from a row that is being sent or settled: settling adds to the stored count.
-- name: uncount
WITH open AS MATERIALIZED (
  SELECT o.id, t.tries FROM unnest($1::bigint[], $2::integer[]) AS t (id, tries) CROSS JOIN LATERAL (
    SELECT o.id FROM orders.outbox_orders o WHERE o.id = t.id AND o.status IN ('pending', 'sending', 'failed') FOR UPDATE) o)
UPDATE orders.outbox_orders o SET attempts = greatest(o.attempts - p.tries, 0), updated_at = now()
FROM open p WHERE o.id = p.id;
