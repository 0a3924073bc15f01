-- Who calls.

-- The status of an account (a key without a row is active), and the policies that it has not agreed to and must: "terms 1.0".
-- name: standing_of
SELECT coalesce((SELECT a.status FROM cn_user.accounts a WHERE a.pubkey = $1), 'active') AS status,
  ARRAY(SELECT m.type || ' ' || m.version FROM cn_user.missing_consents($1) m) AS missing;

-- A challenge for a key, for $3 seconds. Of one key the newest $4 stay: whoever asks for many in the name of somebody else
-- does not fill the table.
-- name: add_challenge
WITH crowd AS (
  SELECT c.challenge FROM cn_user.auth_challenges c WHERE c.pubkey = $2 ORDER BY c.expires_at DESC OFFSET $4 - 1
), forgotten AS (
  DELETE FROM cn_user.auth_challenges c USING crowd WHERE c.challenge = crowd.challenge
)
INSERT INTO cn_user.auth_challenges (challenge, pubkey, expires_at)
VALUES ($1, $2, now() + make_interval(secs => $3)) RETURNING expires_at;

-- Uses a challenge up. No row: there is none for this key. A fresh one makes the account, if there is none.
-- name: use_challenge
WITH used AS (
  DELETE FROM cn_user.auth_challenges c WHERE c.challenge = $1 AND c.pubkey = $2 RETURNING c.expires_at > now() AS is_fresh
), made AS (
  INSERT INTO cn_user.accounts (pubkey) SELECT $2 FROM used u WHERE u.is_fresh ON CONFLICT (pubkey) DO NOTHING
)
SELECT u.is_fresh, coalesce((SELECT a.status FROM cn_user.accounts a WHERE a.pubkey = $2), 'active') AS status FROM used u;

-- Throws away what has expired, up to $1 rows of each.
-- name: purge_challenges
DELETE FROM cn_user.auth_challenges WHERE challenge IN (
  SELECT c.challenge FROM cn_user.auth_challenges c WHERE c.expires_at < now() ORDER BY c.expires_at LIMIT $1);

-- name: purge_usage_events
DELETE FROM cn_user.usage_events WHERE (pubkey, metric, day, request_key) IN (
  SELECT e.pubkey, e.metric, e.day, e.request_key FROM cn_user.usage_events e
  WHERE e.day < (now() AT TIME ZONE 'UTC')::date - 1 ORDER BY e.day LIMIT $1);

-- name: purge_usage_counters
DELETE FROM cn_user.usage_counters_daily WHERE (pubkey, metric, day) IN (
  SELECT c.pubkey, c.metric, c.day FROM cn_user.usage_counters_daily c
  WHERE c.day < (now() AT TIME ZONE 'UTC')::date - 92 ORDER BY c.day LIMIT $1);
