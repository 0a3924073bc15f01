-- Lets only `node_role` and the owner of the tables take advisory locks in this database. Postgres lets every role take every
-- one, so that a consumer of the log could hold the lock that all who append wait for. A superuser's to call.
CREATE FUNCTION cn_admin.guard_locks(node_role name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
