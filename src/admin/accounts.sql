-- Administrators, sessions and tokens. Who acts is said first, in the same transaction: the audit is written by triggers.

-- name: act_for
SELECT set_config('cn_admin.actor', $1, true), set_config('cn_admin.network', $2, true), set_config('orders.actor', $1, true);

-- name: create_administrator
INSERT INTO cn_admin.administrators (name, role, password_hash) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING RETURNING name;

-- name: reset_password
WITH changed AS (
  UPDATE cn_admin.administrators SET password_hash = $2, password_changed_at = now() WHERE name = $1 RETURNING name),
ended AS (DELETE FROM cn_admin.admin_sessions s USING changed c WHERE s.name = c.name)
SELECT name FROM changed;

-- name: set_disabled
WITH changed AS (UPDATE cn_admin.administrators SET is_disabled = $2 WHERE name = $1 RETURNING name),
ended AS (DELETE FROM cn_admin.admin_sessions s USING changed c WHERE s.name = c.name AND $2)
SELECT name FROM changed;

-- name: list_administrators
SELECT name, role, is_disabled, cn_admin.rfc3339(created_at), cn_admin.rfc3339(password_changed_at)
FROM cn_admin.administrators ORDER BY name LIMIT 1000;

-- name: create_token
INSERT INTO cn_admin.admin_tokens (token_id, token_hash, name, role, expires_at) VALUES ($1, $2, $3, $4, $5);

-- name: list_tokens
SELECT token_id, name, role, cn_admin.rfc3339(created_at), created_by, cn_admin.rfc3339(expires_at), cn_admin.rfc3339(used_at),
  cn_admin.rfc3339(revoked_at)
FROM cn_admin.admin_tokens ORDER BY created_at DESC, token_id LIMIT 1000;

-- name: revoke_token
UPDATE cn_admin.admin_tokens SET revoked_at = now() WHERE token_id = $1 AND revoked_at IS NULL RETURNING token_id;

-- name: credentials_of
SELECT password_hash, role FROM cn_admin.administrators WHERE name = $1 AND NOT is_disabled;

-- The sessions of a person beyond the newest 20 go, and everybody's that are too old.
-- name: begin_session
WITH old AS (
  DELETE FROM cn_admin.admin_sessions WHERE id_hash = $7 OR expires_at <= $5 OR id_hash IN (
    SELECT s.id_hash FROM cn_admin.admin_sessions s WHERE s.name = $2 ORDER BY s.created_at DESC OFFSET 19)),
noted AS (SELECT cn_admin.note('login', 'administrator ' || $2))
INSERT INTO cn_admin.admin_sessions (id_hash, name, csrf_token, network, created_at, seen_at, expires_at)
SELECT $1, $2, $3, $4, $5, $5, $6 FROM noted;

-- A session is written to once a minute at most.
-- name: find_session
WITH found AS (
  SELECT s.id_hash, s.name, a.role, s.csrf_token, s.expires_at, s.seen_at
  FROM cn_admin.admin_sessions s JOIN cn_admin.administrators a USING (name)
  WHERE s.id_hash = $1 AND NOT a.is_disabled AND s.expires_at > $2 AND s.seen_at > $3),
seen AS (
  UPDATE cn_admin.admin_sessions s SET seen_at = $2 FROM found f
  WHERE s.id_hash = f.id_hash AND f.seen_at < $2 - interval '1 minute')
SELECT name, role, csrf_token, expires_at FROM found;

-- name: end_session
WITH ended AS (DELETE FROM cn_admin.admin_sessions WHERE id_hash = $1 RETURNING name)
SELECT cn_admin.note('logout', 'administrator ' || e.name) FROM ended e;

-- name: find_token
WITH found AS (
  SELECT token_id, name, role, used_at FROM cn_admin.admin_tokens
  WHERE token_hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)),
used AS (
  UPDATE cn_admin.admin_tokens t SET used_at = $2 FROM found f
  WHERE t.token_id = f.token_id AND (f.used_at IS NULL OR f.used_at < $2 - interval '1 minute'))
SELECT name, role FROM found;

-- The same for a session: its caller takes it back.
-- name: act_for_session
SELECT set_config('cn_admin.actor', $1, false), set_config('cn_admin.network', $2, false);
