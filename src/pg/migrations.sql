-- The books of the migrations.

-- The word "todoke" in ASCII less one: no other program is likely to use it. The word itself is the lock of the log, which a
-- start with nothing to migrate must not wait for, nor hold up.
-- name: lock_migrations
SELECT pg_advisory_lock(128021775215460);

-- name: unlock_migrations
SELECT pg_advisory_unlock(128021775215460);

-- name: migrations_exist
SELECT to_regclass('todoke.schema_migrations') IS NOT NULL;

-- name: list_migrations
SELECT version, name, checksum, applied_at, applied_by
FROM todoke.schema_migrations
ORDER BY version;

-- name: record_migration
INSERT INTO todoke.schema_migrations (version, name, checksum, applied_by)
VALUES ($1, $2, $3, $4);
