-- name: probe
SELECT 1;

-- Who makes the changes of this session, for cn_admin.audit.
-- name: act_as_person
SELECT set_config('cn_admin.actor', $1, false);

-- name: current_role
SELECT current_user::text;

-- Whether consumers from outside may take the advisory locks of the node (cn_admin.guard_locks takes that away).
-- name: locks_are_open
SELECT has_function_privilege(r.oid, 'pg_catalog.pg_advisory_lock(bigint)', 'EXECUTE')
FROM pg_roles r WHERE r.rolname = 'todoke_consumers';

-- Whether this role could change the schema and the audit.
-- name: role_rights
SELECT current_user::text, pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n WHERE n.nspname = 'cn_admin';

-- What keeps an acknowledged commit across a crash.
-- name: durability_settings
SELECT name, setting
  FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
 ORDER BY name;

-- Whether the server's disk takes 8 MiB. The table is gone with the transaction.
-- name: make_probe_table
CREATE TEMPORARY TABLE todoke_storage_probe (filler text) ON COMMIT DROP;

-- name: fill_probe_table
INSERT INTO todoke_storage_probe SELECT repeat('x', 1000) FROM generate_series(1, 8192);
