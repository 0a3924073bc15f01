-- What the role that a node runs as may do, where that is another one than the owner of the tables (docs/database.md).

-- Grants `node_role` what a node needs: it reads and writes rows, and calls the functions. It can't change the schema, set the
-- log's sequence, make roles, change what is append-only (audit, journal, the history of the configuration), or choose the
-- role and the time of an audit row. Repeats itself without harm; the owner calls it after each migration.
CREATE FUNCTION cn_admin.grant_node(node_role name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  append_only constant regclass[] := ARRAY['orders.audit', 'orders.sends']::regclass[];
  audit_columns constant text := 'actor, action, key_hash, outbox_id, before, after, reason';
  read_only constant regclass[] := ARRAY['cn_admin.audit', 'cn_admin.service_config_history', 'todoke.schema_migrations']::regclass[];
  schema text;
  relation regclass;
BEGIN
  FOREACH schema IN ARRAY ARRAY['todoke', 'cn_admin', 'cn_relay', 'cn_search', 'orders'] LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', schema, node_role);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', schema, node_role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', schema, node_role);
    -- Partitions that are made later are reached through their parents.
    FOR relation IN
      SELECT c.oid FROM pg_class c
      WHERE c.relnamespace = schema::regnamespace AND c.relkind IN ('r', 'p', 'v')
        AND c.oid <> ALL (append_only || read_only)
        AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = ANY (append_only))
    LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', relation, node_role);
    END LOOP;
  END LOOP;
  GRANT USAGE ON SCHEMA cn_names TO PUBLIC;
  PERFORM cn_admin.guard_locks(node_role) FROM pg_roles r WHERE r.rolname = current_user AND r.rolsuper;
  FOREACH relation IN ARRAY append_only LOOP
    EXECUTE format('GRANT SELECT ON %s TO %I', relation, node_role);
  END LOOP;
  EXECUTE format('GRANT INSERT (%s) ON orders.audit TO %I', audit_columns, node_role);
  EXECUTE format('GRANT INSERT ON orders.sends TO %I', node_role);
  FOREACH relation IN ARRAY read_only LOOP
    EXECUTE format('GRANT SELECT ON %s TO %I', relation, node_role);
  END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION cn_admin.grant_node(name) FROM PUBLIC;

-- Lets only `node_role` and the owner of the tables take advisory locks in this database. Postgres lets every role take every
-- one, so that a consumer of the log could hold the lock that all who append wait for. A superuser's to call.
CREATE FUNCTION cn_admin.guard_locks(node_role name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  takes_lock regprocedure;
  owner constant name := (SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n WHERE n.nspname = 'cn_admin');
BEGIN
  FOR takes_lock IN
    SELECT p.oid FROM pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ '^pg_(try_)?advisory_(xact_)?lock(_shared)?$'
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', takes_lock);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I, %I', takes_lock, node_role, owner);
  END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION cn_admin.guard_locks(name) FROM PUBLIC;
