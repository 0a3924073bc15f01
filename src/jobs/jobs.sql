-- The statements of docs/queue.md on cn_admin.jobs, and what people do with jobs.
--
-- Each is fenced by id, worker and claim: a worker whose row was taken over changes nothing.

-- Due rows of the kinds in $3, the ones that have waited longest first.
-- name: claim
WITH due AS MATERIALIZED (
  SELECT id FROM cn_admin.jobs
  WHERE status IN ('pending', 'failed') AND run_at <= now() AND kind = ANY ($3::text[])
  ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE cn_admin.jobs j SET status = 'running', claim_no = j.claim_no + 1, locked_by = $2, locked_at = now(),
  started_at = coalesce(j.started_at, now())
FROM due d WHERE j.id = d.id
RETURNING j.id, j.claim_no, j.attempts, j.in_doubt, j.kind, j.subject, j.params, j.state, j.cancel_asked_at IS NOT NULL;

-- name: take_over
WITH lapsed AS MATERIALIZED (
  SELECT id FROM cn_admin.jobs
  WHERE status = 'running' AND locked_at < now() - make_interval(secs => $4) AND kind = ANY ($3::text[])
    AND id <> ALL ($5::bigint[])
  ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE cn_admin.jobs j SET attempts = j.attempts + 1, in_doubt = true, claim_no = j.claim_no + 1, locked_by = $2,
  locked_at = now()
FROM lapsed l WHERE j.id = l.id
RETURNING j.id, j.claim_no, j.attempts, j.in_doubt, j.kind, j.subject, j.params, j.state, j.cancel_asked_at IS NOT NULL;

-- name: give_back_unknown
UPDATE cn_admin.jobs SET status = 'pending', locked_by = NULL
WHERE status = 'running' AND locked_by = $1 AND id <> ALL ($2::bigint[]);

-- A job that somebody asked for again while it ran begins anew when it has ended, however it ended.
-- name: settle
WITH asked AS (
  SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::integer[], $6::boolean[], $7::bigint[], $8::jsonb[], $9::text[])
    WITH ORDINALITY AS t (id, claim_no, status, attempts, in_doubt, delay_ms, result, error, n)),
judged AS MATERIALIZED (
  SELECT a.*, a.status IN ('succeeded', 'aborted', 'cancelled') AS is_over,
    a.status IN ('succeeded', 'aborted', 'cancelled') AND j.asked_again AS begins_anew
  FROM asked a JOIN cn_admin.jobs j ON j.id = a.id
  WHERE j.status = 'running' AND j.locked_by = $1 AND j.claim_no = a.claim_no
  ORDER BY a.id FOR UPDATE OF j),
settled AS (
  UPDATE cn_admin.jobs j SET
    status = CASE WHEN d.begins_anew THEN 'pending' ELSE d.status END,
    attempts = CASE WHEN d.begins_anew THEN 0 ELSE d.attempts END,
    in_doubt = d.in_doubt AND NOT d.begins_anew,
    state = CASE WHEN d.begins_anew THEN '{}' ELSE j.state END,
    done = CASE WHEN d.begins_anew THEN 0 ELSE j.done END,
    total = CASE WHEN NOT d.begins_anew THEN j.total END,
    started_at = CASE WHEN NOT d.begins_anew THEN j.started_at END,
    finished_at = CASE WHEN d.is_over AND NOT d.begins_anew THEN now() END,
    cancel_asked_at = CASE WHEN NOT d.begins_anew THEN j.cancel_asked_at END,
    asked_again = j.asked_again AND NOT d.begins_anew,
    result = d.result, error = d.error, locked_by = NULL,
    run_at = now() + d.delay_ms * interval '1 millisecond'
  FROM judged d WHERE j.id = d.id
  RETURNING d.n)
SELECT a.n IN (SELECT n FROM settled) FROM asked a ORDER BY a.n;

-- name: heartbeat
WITH asked AS (
  SELECT * FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS t (id, claim_no, n)),
renewed AS (
  UPDATE cn_admin.jobs j SET locked_at = now()
  FROM asked a WHERE j.id = a.id AND j.status = 'running' AND j.locked_by = $1 AND j.claim_no = a.claim_no
  RETURNING a.n)
SELECT a.n IN (SELECT n FROM renewed) FROM asked a ORDER BY a.n;

-- A job that gets on has all its attempts again: a failure counts against the piece of work that it stopped. No row: it is
-- somebody else's.
-- name: keep
UPDATE cn_admin.jobs SET done = $4, total = $5, state = $6, attempts = 0, in_doubt = false, error = NULL, locked_at = now()
WHERE id = $1 AND status = 'running' AND locked_by = $2 AND claim_no = $3
RETURNING cancel_asked_at IS NOT NULL;

-- name: purge
WITH old AS MATERIALIZED (
  SELECT id FROM cn_admin.jobs WHERE finished_at < now() - make_interval(secs => $1)
  ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM cn_admin.jobs j USING old o WHERE j.id = o.id;
