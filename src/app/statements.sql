-- name: probe
SELECT 1;

-- What keeps an acknowledged commit across a crash.
-- name: durability_settings
SELECT name, setting
  FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
 ORDER BY name;
