-- What the Admin API changes. Each statement returns `problem` (NULL: it worked) and the item as JSON, or what there is to say of
-- the problem. `INVALID <field>` names a member that is wrong.

-- name: approve_request
SELECT a.problem, CASE WHEN a.problem IS NULL
    THEN json_build_object('request_id', $1::text, 'topic_id', a.topic_id, 'requester_pubkey', a.requester_pubkey,
      'status', a.status, 'review_note', $2::text, 'reviewed_by', $3::text)
    ELSE json_build_object('status', a.status, 'current', a.current, 'limit', a.most) END::text
FROM cn_user.approve_request($1::text::uuid, $2, $3, $4) a;

-- name: reject_request
SELECT r.problem, CASE WHEN r.problem IS NULL
    THEN json_build_object('request_id', $1::text, 'topic_id', r.topic_id, 'requester_pubkey', r.requester_pubkey,
      'status', r.status, 'review_note', $2::text, 'reviewed_by', $3::text)
    ELSE json_build_object('status', r.status) END::text
FROM cn_user.reject_request($1::text::uuid, $2, $3) r;

-- The node's own periods are checked before ($3: what is wrong).
-- name: set_ingest_policy
WITH asked AS (SELECT $2::text::jsonb AS policy),
problem AS (SELECT cn_relay.ingest_policy_problem(a.policy) AS text FROM asked a),
changed AS (
  UPDATE cn_relay.node_subscriptions s SET ingest_policy = a.policy FROM asked a, problem p
  WHERE s.topic_id = $1 AND p.text IS NULL
  RETURNING s.*)
SELECT CASE WHEN p.text IS NOT NULL THEN 'INVALID ingest_policy' WHEN c.topic_id IS NULL THEN 'NOT_FOUND' END,
  coalesce(p.text, json_build_object('topic_id', c.topic_id, 'enabled', c.enabled, 'pinned', c.pinned,
    'ref_count', c.ref_count, 'ingest_policy', c.ingest_policy, 'name', c.name)::text)
FROM problem p LEFT JOIN changed c ON true;

-- Somebody whom the node does not know yet can be kept out before they come: the account is made first, so that the change of its
-- status is audited. Deleted accounts stay deleted.
-- name: know_account
INSERT INTO cn_user.accounts (pubkey) VALUES ($1) ON CONFLICT (pubkey) DO NOTHING;

-- name: set_account_status
WITH was AS (SELECT a.status FROM cn_user.accounts a WHERE a.pubkey = $1 FOR UPDATE),
changed AS (
  UPDATE cn_user.accounts a SET status = $2, note = coalesce($3, a.note), updated_at = now() FROM was w
  WHERE a.pubkey = $1 AND w.status <> 'deleted'
  RETURNING a.*)
SELECT CASE WHEN w.status = 'deleted' THEN 'ACCOUNT_DELETED' END,
  json_build_object('pubkey', $1::text, 'status', coalesce(c.status, w.status), 'plan_id', c.plan_id, 'note', c.note)::text
FROM was w LEFT JOIN changed c ON true;

-- name: set_account_plan
WITH fits AS (SELECT $2::text IS NULL OR EXISTS (SELECT FROM cn_user.plans p WHERE p.plan_id = $2) AS it),
changed AS (
  UPDATE cn_user.accounts a SET plan_id = $2, updated_at = now() FROM fits f WHERE a.pubkey = $1 AND f.it RETURNING a.*)
SELECT CASE WHEN NOT f.it THEN 'INVALID plan_id' WHEN c.pubkey IS NULL THEN 'NOT_FOUND' END,
  CASE WHEN NOT f.it THEN 'must be a plan'
       ELSE json_build_object('pubkey', c.pubkey, 'status', c.status, 'plan_id', c.plan_id)::text END
FROM fits f LEFT JOIN changed c ON true;

-- The limits that are not named have none.
-- name: drop_default_plan
UPDATE cn_user.plans SET is_default = false WHERE $2 AND is_default AND plan_id <> $1;

-- name: put_plan
WITH plan AS (
  INSERT INTO cn_user.plans AS p (plan_id, name, is_default) VALUES ($1, $2, $3)
  ON CONFLICT (plan_id) DO UPDATE SET name = $2, is_default = p.is_default OR $3, updated_at = now()
  RETURNING p.*),
wanted AS (SELECT l.key AS metric, l.value::bigint AS value FROM jsonb_each_text($4::text::jsonb) l),
gone AS (
  DELETE FROM cn_user.plan_limits l WHERE l.plan_id = $1 AND NOT EXISTS (SELECT FROM wanted w WHERE w.metric = l.metric)),
kept AS (
  INSERT INTO cn_user.plan_limits (plan_id, metric, value) SELECT p.plan_id, w.metric, w.value FROM plan p, wanted w
  ON CONFLICT (plan_id, metric) DO UPDATE SET value = excluded.value)
SELECT NULL::text, json_build_object('plan_id', p.plan_id, 'name', p.name, 'is_default', p.is_default,
  'limits', $4::text::json)::text FROM plan p;

-- name: draft_policy
WITH was AS (SELECT p.status FROM cn_admin.policies p WHERE p.type = $1 AND p.version = $2 AND p.locale = $3 FOR UPDATE),
put AS (
  INSERT INTO cn_admin.policies AS p (type, version, locale, title, content)
  SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM was w WHERE w.status = 'published')
  ON CONFLICT (type, version, locale) DO UPDATE SET title = $4, content = $5 WHERE p.status = 'draft'
  RETURNING p.status)
SELECT CASE WHEN NOT EXISTS (SELECT FROM put) THEN 'POLICY_PUBLISHED' END,
  json_build_object('type', $1::text, 'version', $2::text, 'locale', $3::text, 'title', $4::text,
    'status', coalesce((SELECT p.status FROM put p), 'published'))::text;

-- name: drop_draft
WITH was AS (SELECT p.status FROM cn_admin.policies p WHERE p.type = $1 AND p.version = $2 AND p.locale = $3 FOR UPDATE),
gone AS (DELETE FROM cn_admin.policies p USING was w
         WHERE p.type = $1 AND p.version = $2 AND p.locale = $3 AND w.status = 'draft' RETURNING p.type)
SELECT CASE WHEN w.status = 'published' THEN 'POLICY_PUBLISHED' END,
  json_build_object('type', $1::text, 'version', $2::text, 'locale', $3::text)::text
FROM was w;

-- name: publish_policy
WITH was AS (SELECT p.status FROM cn_admin.policies p WHERE p.type = $1 AND p.version = $2 AND p.locale = $3 FOR UPDATE),
done AS (
  UPDATE cn_admin.policies p SET status = 'published', published_at = now() FROM was w
  WHERE p.type = $1 AND p.version = $2 AND p.locale = $3 AND w.status = 'draft' RETURNING p.published_at)
SELECT CASE WHEN w.status = 'published' THEN 'POLICY_PUBLISHED' END,
  json_build_object('type', $1::text, 'version', $2::text, 'locale', $3::text, 'status', 'published',
    'published_at', cn_admin.rfc3339((SELECT d.published_at FROM done d)))::text
FROM was w;

-- name: make_policy_current
WITH found AS (
  SELECT bool_or(p.status = 'published') AS is_published FROM cn_admin.policies p WHERE p.type = $1 AND p.version = $2),
put AS (
  INSERT INTO cn_admin.current_policies AS c (type, version) SELECT $1, $2 FROM found f WHERE f.is_published
  ON CONFLICT (type) DO UPDATE SET version = $2, effective_at = CASE WHEN c.version = $2 THEN c.effective_at ELSE now() END
  RETURNING c.effective_at)
SELECT CASE WHEN f.is_published IS NULL THEN 'NOT_FOUND' WHEN NOT f.is_published THEN 'POLICY_NOT_PUBLISHED' END,
  json_build_object('type', $1::text, 'version', $2::text, 'effective_at',
    cn_admin.rfc3339((SELECT p.effective_at FROM put p)))::text
FROM found f;

-- name: drop_current_policy
DELETE FROM cn_admin.current_policies c WHERE c.type = $1
RETURNING NULL::text AS problem, json_build_object('type', c.type, 'version', c.version)::text;

-- One that waits ends at once; one that runs ends at its next piece of work, and does not begin anew for what was asked before.
-- name: cancel_job
WITH was AS (SELECT j.id, j.status FROM cn_admin.jobs j WHERE j.id = $1 FOR UPDATE),
changed AS (
  UPDATE cn_admin.jobs j SET cancel_asked_at = coalesce(j.cancel_asked_at, now()), asked_again = false,
    status = CASE WHEN w.status = 'running' THEN 'running' ELSE 'cancelled' END,
    finished_at = CASE WHEN w.status <> 'running' THEN now() END
  FROM was w WHERE j.id = w.id AND w.status IN ('pending', 'running', 'failed')
  RETURNING j.*),
noted AS (
  SELECT cn_admin.note('job cancel', 'job ' || c.id, jsonb_build_object('status', w.status, 'kind', c.kind),
    jsonb_build_object('status', c.status)) FROM changed c JOIN was w USING (id))
SELECT CASE WHEN c.id IS NULL THEN 'ALREADY_ENDED' END,
  coalesce(cn_admin.job_json(c)::text, json_build_object('status', w.status)::text)
FROM was w LEFT JOIN changed c USING (id) LEFT JOIN noted n ON true;

-- The database's layer of one service, whole.
-- name: replace_service_config
WITH was AS (SELECT s.version FROM cn_admin.service_configs s WHERE s.service = $1 FOR UPDATE),
changed AS (
  UPDATE cn_admin.service_configs s SET config = $3::text::jsonb WHERE s.service = $1 AND s.version = $2 RETURNING s.version),
added AS (
  INSERT INTO cn_admin.service_configs (service, config) SELECT $1, $3::text::jsonb
  WHERE $2 = 0 AND NOT EXISTS (SELECT FROM was)
  ON CONFLICT (service) DO NOTHING RETURNING version),
now_at AS (SELECT version FROM changed UNION ALL SELECT version FROM added)
SELECT CASE WHEN NOT EXISTS (SELECT FROM now_at) THEN 'VERSION_MISMATCH' END,
  json_build_object('service', $1::text, 'version', coalesce((SELECT n.version FROM now_at n), (SELECT w.version FROM was w), 0),
    'config', $3::text::json)::text;
