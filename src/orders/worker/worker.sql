-- The worker's statements on the outbox and the ledger. Sessions that run them set orders.actor and turn off plans other
-- than nested loops over indexes: the statistics of a queue are always those of a moment ago.
--
-- Lists of rows come in the order of their ids, and rows are locked in it, one index lookup for each: as a plain join the
-- planner may put the list inside and go through all of it for every row (1,000 rows: 1.5 s instead of 5 ms).
--
-- Nobody waits for an outbox row that somebody else has locked, such as an operator in an open transaction: the other rows
-- would wait with it. It is left out, still_held tells it from one that was taken away, and it is tried again.
--
-- What an UPDATE takes its rows from is MATERIALIZED. A row may have been changed between the beginning of the statement and its
-- lock (a heartbeat); Postgres then looks at its newest version again, together with the row of the list that belongs to it. Of
-- a list that is part of the plan (UNION ALL) it does not know that row, and leaves the order out.

-- Turns rows whose time has come into pending ones; next_run_at stays and is their place in the line.
-- name: promote_due
UPDATE orders.outbox_orders o SET status = 'pending', updated_at = now()
FROM (SELECT id FROM orders.outbox_orders WHERE status = 'failed' AND next_run_at <= now()
      ORDER BY next_run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED) due
WHERE o.id = due.id;

-- One worker at a time looks for the first of each instrument: two with different snapshots could each find one.
-- name: lock_instruments
SELECT pg_advisory_xact_lock(128021775215470);

-- Rows with what the ledger says of their key. A settled failure of a pending row means that it was requeued: its
-- ledger row is open again, with an audit row; where somebody has locked that, the row is left for later.
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

-- Rows whose lease of $3 seconds has lapsed: a failed try ($4: the budget), in doubt, and written down for the worker that
-- vanished. The journal's began_at is its last sign of life. Not those that this worker itself still has ($6): it settles
-- them when the database lets it; nor those of another adapter's worker, whose broker may have them; nor, while a worker
-- with a longer lease shows signs of life ($7 seconds), those that are its own by that.
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

-- name: still_held
SELECT o.id, o.claim_no FROM unnest($2::bigint[], $3::bigint[]) AS t (id, claim_no) CROSS JOIN LATERAL (
  SELECT o.id, o.claim_no FROM orders.outbox_orders o
  WHERE o.id = t.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = t.claim_no) o;

-- name: heartbeat
WITH held AS MATERIALIZED (
  SELECT o.id FROM unnest($2::bigint[], $3::bigint[]) AS t (id, claim_no) CROSS JOIN LATERAL (
    SELECT o.id FROM orders.outbox_orders o
    WHERE o.id = t.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = t.claim_no FOR UPDATE SKIP LOCKED) o)
UPDATE orders.outbox_orders o SET locked_at = now(), updated_at = now() FROM held h WHERE o.id = h.id
RETURNING o.id, o.claim_no;

-- An order in doubt stays with the adapter that has tried it: another broker knows nothing of it.
--
-- Settles tries: who still holds its row (locked here) writes the ledger first, then the row. A try that wants to write
-- the ledger and finds it settled with success, or with another content, writes neither: its row follows the ledger
-- (follow_ledger). Returned: every row that was held and, once more, those that were settled.
-- name: settle
WITH held AS MATERIALIZED (
  SELECT o.id, o.idempotency_key, o.request_digest, t.claim_no, t.status, t.counted, t.error_code, t.error_msg, t.delay_ms,
    t.in_doubt, t.ledger_status, t.http_status, t.result_digest, t.payload, t.ledger_missing, t.key_hash, t.broker_id,
    t.began_at, t.ended_at, t.outcome, t.broker_ref, t.note, t.key_was_taken
  FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::bigint[], $10::boolean[],
              $11::text[], $12::integer[], $13::text[], $14::text[], $15::boolean[], $16::text[], $17::text[],
              $18::timestamptz[], $19::timestamptz[], $20::text[], $21::text[], $22::text[], $23::boolean[])
    AS t (id, claim_no, status, counted, error_code, error_msg, delay_ms, in_doubt, ledger_status, http_status,
          result_digest, payload, ledger_missing, key_hash, broker_id, began_at, ended_at, outcome, broker_ref, note,
          key_was_taken)
  CROSS JOIN LATERAL (
    SELECT o.id, o.idempotency_key, o.request_digest FROM orders.outbox_orders o
    WHERE o.id = t.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = t.claim_no FOR UPDATE SKIP LOCKED) o),
written AS (
  UPDATE orders.idempo_ledger l
  SET status = h.ledger_status, http_status = h.http_status, result_digest = h.result_digest,
    response_payload_json = h.payload::json, last_seen_at = now(), expires_at = now() + interval '48 hours'
  FROM held h
  WHERE h.ledger_status IS NOT NULL AND NOT h.ledger_missing AND l.idempotency_key = h.idempotency_key
    AND l.status <> 'succeeded' AND l.request_digest = h.request_digest
  RETURNING h.id, h.status, h.counted, h.error_code, h.error_msg, h.delay_ms, h.in_doubt, h.key_was_taken),
created AS (
  INSERT INTO orders.idempo_ledger (idempotency_key, request_digest, status, http_status, result_digest,
    response_payload_json, expires_at)
  SELECT h.idempotency_key, h.request_digest, h.ledger_status, h.http_status, h.result_digest, h.payload::json,
    now() + interval '48 hours'
  FROM held h WHERE h.ledger_status IS NOT NULL AND h.ledger_missing
  ON CONFLICT (idempotency_key) DO NOTHING
  RETURNING idempotency_key),
ready AS MATERIALIZED (
  SELECT id, status, counted, error_code, error_msg, delay_ms, in_doubt, key_was_taken FROM written
  UNION ALL
  SELECT h.id, h.status, h.counted, h.error_code, h.error_msg, h.delay_ms, h.in_doubt, h.key_was_taken
  FROM created c JOIN held h ON h.idempotency_key = c.idempotency_key
  UNION ALL
  SELECT id, status, counted, error_code, error_msg, delay_ms, in_doubt, key_was_taken FROM held WHERE ledger_status IS NULL),
settled AS (
  UPDATE orders.outbox_orders o
  SET status = r.status, attempts = o.attempts + r.counted, last_error_code = r.error_code,
    last_error_msg = left(r.error_msg, 512), next_run_at = now() + r.delay_ms * interval '1 millisecond',
    in_doubt = r.in_doubt, key_was_taken = o.key_was_taken OR r.key_was_taken, adapter = CASE WHEN r.in_doubt THEN $2 ELSE o.adapter END, locked_by = NULL, locked_at = NULL,
    updated_at = now()
  FROM ready r WHERE o.id = r.id
  RETURNING o.id, o.claim_no),
journal AS (
  INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, broker_id, began_at, ended_at, outcome, broker_ref,
    note, worker)
  SELECT h.id, h.key_hash, h.claim_no, $2, h.broker_id, h.began_at, h.ended_at, h.outcome, h.broker_ref, h.note, $1
  FROM held h WHERE h.outcome IS NOT NULL)
SELECT id, claim_no, true AS settled FROM settled UNION ALL SELECT id, claim_no, false FROM held;

-- Tries of rows that were no longer ours: for the journal only. Not written a second time when it was our own settling,
-- whose answer was lost, that let the row go; those are returned as not fenced.
-- name: journal_fenced
WITH t AS MATERIALIZED (
  SELECT t.*, s.fenced FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::timestamptz[],
      $8::timestamptz[], $9::text[], $10::text[], $11::text[])
    AS t (id, claim_no, key_hash, broker_id, began_at, ended_at, outcome, broker_ref, note)
  LEFT JOIN LATERAL (SELECT s.fenced FROM orders.sends s
    WHERE s.outbox_id = t.id AND s.claim_no = t.claim_no AND s.worker = $1 AND s.outcome <> 'LEASE_EXPIRED' LIMIT 1) s ON true),
written AS (
  INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, broker_id, began_at, ended_at, outcome, broker_ref,
    note, worker, fenced)
  SELECT t.id, t.key_hash, t.claim_no, $2, t.broker_id, t.began_at, t.ended_at, t.outcome, t.broker_ref, t.note, $1, true
  FROM t WHERE t.fenced IS NULL)
SELECT t.id, t.claim_no, coalesce(t.fenced, true) AS fenced FROM t;

-- Rows whose ledger has the last word: settled already, or of another content, which is left alone. Returned: those that
-- were settled and, once more and without a status, every row that was held.
-- name: follow_ledger
WITH held AS MATERIALIZED (
  SELECT o.id, o.claim_no, o.idempotency_key, o.request_digest
  FROM unnest($2::bigint[], $3::bigint[]) AS t (id, claim_no) CROSS JOIN LATERAL (
    SELECT o.id, o.claim_no, o.idempotency_key, o.request_digest FROM orders.outbox_orders o
    WHERE o.id = t.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = t.claim_no FOR UPDATE SKIP LOCKED) o),
truth AS MATERIALIZED (
  SELECT h.id, l.status, l.request_digest = h.request_digest AS is_same, l.response_payload_json ->> 'reason_code' AS code
  FROM held h JOIN orders.idempo_ledger l ON l.idempotency_key = h.idempotency_key),
settled AS (
  UPDATE orders.outbox_orders o
  SET status = CASE WHEN t.is_same AND t.status = 'succeeded' THEN 'succeeded' ELSE 'aborted' END,
    last_error_code = CASE WHEN NOT t.is_same THEN 'IDEMPOTENCY_CONFLICT' WHEN t.status = 'failed'
      THEN coalesce(t.code, o.last_error_code) END,
    last_error_msg = CASE WHEN NOT t.is_same THEN 'the key belongs to an order with another content' END,
    in_doubt = o.in_doubt AND NOT (t.is_same AND t.status = 'succeeded'),
    next_run_at = NULL, locked_by = NULL, locked_at = NULL, updated_at = now()
  FROM truth t WHERE o.id = t.id AND (NOT t.is_same OR t.status IN ('succeeded', 'failed'))
  RETURNING o.id, o.claim_no, o.status, coalesce(o.last_error_code, '') AS code, o.attempts)
SELECT id, claim_no, status, code, attempts FROM settled UNION ALL SELECT id, claim_no, NULL, NULL, NULL FROM held;

-- name: give_back
WITH held AS MATERIALIZED (
  SELECT o.id FROM unnest($2::bigint[], $3::bigint[]) AS t (id, claim_no) CROSS JOIN LATERAL (
    SELECT o.id FROM orders.outbox_orders o
    WHERE o.id = t.id AND o.status = 'sending' AND o.locked_by = $1 AND o.claim_no = t.claim_no FOR UPDATE SKIP LOCKED) o)
UPDATE orders.outbox_orders o SET status = 'pending', locked_by = NULL, locked_at = NULL, updated_at = now()
FROM held h WHERE o.id = h.id
RETURNING o.id, o.claim_no;

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

-- A row that is being sent or settled gets them too: settling adds to what is there.
-- name: refund
WITH open AS MATERIALIZED (
  SELECT o.id, t.tries FROM unnest($1::bigint[], $2::integer[]) AS t (id, tries) CROSS JOIN LATERAL (
    SELECT o.id FROM orders.outbox_orders o WHERE o.id = t.id AND o.status IN ('pending', 'sending', 'failed') FOR UPDATE) o)
UPDATE orders.outbox_orders o SET attempts = greatest(o.attempts - p.tries, 0), updated_at = now()
FROM open p WHERE o.id = p.id;
