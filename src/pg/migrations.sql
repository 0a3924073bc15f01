-- The books of the migrations.

-- The key is the word "todoke" in ASCII: no other program is likely to use it.
-- name: lock_migrations
SELECT pg_advisory_lock(x'746f646f6b65'::bigint);

-- name: unlock_migrations
SELECT pg_advisory_unlock(x'746f646f6b65'::bigint);

-- name: migrations_exist
SELECT to_regclass('todoke.schema_migrations') IS NOT NULL;

-- name: list_migrations
SELECT version, name, checksum, applied_at, applied_by
FROM todoke.schema_migrations
ORDER BY version;

-- name: record_migration
INSERT INTO todoke.schema_migrations (version, name, checksum, applied_by)
VALUES ($1, $2, $3, $4);
