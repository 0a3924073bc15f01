-- Does nothing for a service that has a row: it was seeded before, and the database holds what it became.
-- name: seed_service_configs
INSERT INTO cn_admin.service_configs (service, config)
SELECT seed.service, seed.config::jsonb
  FROM unnest($1::text[], $2::text[]) AS seed (service, config)
ON CONFLICT (service) DO NOTHING
RETURNING service;

-- A line for each key, and one without a key for a service that has none.
-- name: read_service_configs
SELECT c.service, c.version, v.key, left(v.value, 65536) AS value
  FROM cn_admin.service_configs c
  LEFT JOIN LATERAL jsonb_each_text(c.config) AS v ON true
 ORDER BY c.service, v.key
 LIMIT $1;

-- Who makes the changes of this transaction.
-- name: act_as
SELECT set_config('cn_admin.actor', $1, true);

-- Compare and set: gives the new version, or no row when the service is at another version than $4 (0: it has no row).
-- Without a value ($3) the key is taken out.
-- name: change_service_config
WITH changed AS (
  UPDATE cn_admin.service_configs
     SET config = CASE WHEN $3::text IS NULL THEN config - $2::text
                       ELSE config || jsonb_build_object($2::text, $3::text) END
   WHERE service = $1 AND version = $4::bigint
  RETURNING version
), added AS (
  INSERT INTO cn_admin.service_configs (service, config)
  SELECT $1, jsonb_build_object($2::text, $3::text)
   WHERE $4::bigint = 0 AND $3::text IS NOT NULL
  ON CONFLICT (service) DO NOTHING
  RETURNING version
)
SELECT version FROM changed
UNION ALL
SELECT version FROM added;

-- The newest first. A value that is no text is shown as JSON.
-- name: service_config_history
SELECT h.service, h.version, h.key, h.before #>> '{}' AS before, h.after #>> '{}' AS after,
       to_char(h.changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS changed_at, h.changed_by
  FROM cn_admin.service_config_history h
 WHERE $1::text IS NULL OR (h.service = split_part($1::text, '.', 1) AND h.key = $1::text)
 ORDER BY h.changed_at DESC, h.service, h.version DESC, h.key
 LIMIT $2;
