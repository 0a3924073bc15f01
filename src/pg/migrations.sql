-- The books of the migrations.

-- cn_names.lock_migrations() in migrations/0001_admin.sql, which is not there before the first migration. Not the lock of the
-- log: a start with nothing to migrate must not wait for that, nor hold it up.
-- name: lock_migrations
SELECT pg_advisory_lock(128021775215460);

-- name: unlock_migrations
SELECT pg_advisory_unlock(128021775215460);

-- Whether they are there, and whether this role may read them.
-- name: migrations_exist
SELECT count(*) > 0, coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), true),
  current_user::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'todoke' AND c.relname = 'schema_migrations';

-- Whether this role owns what is there, or may make it.
-- name: may_migrate
SELECT coalesce((SELECT pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n WHERE n.nspname = 'todoke'),
                has_database_privilege(current_database(), 'CREATE')), current_user::text;

-- name: list_migrations
SELECT version, name, checksum, applied_at, applied_by
FROM todoke.schema_migrations
ORDER BY version;

-- Grants the role $1 what a node needs, unless it has all the rights of this one. $2: also if it was done before.
-- name: grant_node
SELECT cn_admin.grant_node($1::name)
WHERE NOT pg_has_role($1::name, current_user, 'USAGE') AND ($2 OR NOT has_schema_privilege($1::name, 'todoke', 'USAGE'));

-- name: record_migration
INSERT INTO todoke.schema_migrations (version, name, checksum, applied_by)
VALUES ($1, $2, $3, $4);
