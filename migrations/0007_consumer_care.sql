-- Looking after consumers: who loses rows is told even while it holds its offset, and consumers can be taken away.

-- A consumer that moves on from below the log's floor has passed over rows that are gone. Retention marks such consumers
-- itself, but waits for nobody who has locked its offset. One that has read nothing yet begins with what is left.
CREATE FUNCTION cn_relay.offset_passes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  IF OLD.last_seq < (SELECT f.dropped_until FROM cn_relay.log_floor f) THEN
    NEW.state := 'needs_rebuild';
  END IF;
  RETURN NEW;
END $$;
REVOKE EXECUTE ON FUNCTION cn_relay.offset_passes() FROM PUBLIC;

CREATE TRIGGER passes BEFORE UPDATE OF last_seq ON cn_relay.consumer_offsets FOR EACH ROW
  WHEN (NEW.last_seq > OLD.last_seq AND OLD.last_seq > 0 AND OLD.state = 'live' AND NEW.state = 'live')
  EXECUTE FUNCTION cn_relay.offset_passes();

-- Takes the role of a consumer away, its sessions first. What it owns in this database goes with it when `with_owned` says
-- so; otherwise a role that owns anything is refused. The caller needs CREATEROLE.
CREATE FUNCTION cn_relay.drop_consumer_role(name text, with_owned boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE
  who constant text := 'consumer_' || name;
  owned text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = who) THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
                 WHERE r.rolname = 'todoke_consumers' AND m.member = quote_ident(who)::regrole) THEN
    RAISE EXCEPTION 'the role % is no consumer', who USING ERRCODE = 'duplicate_object';
  END IF;
  SELECT string_agg(pg_describe_object(d.classid, d.objid, d.objsubid), ', ') INTO owned
  FROM (SELECT * FROM pg_shdepend d
        WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = quote_ident(who)::regrole AND d.deptype = 'o'
          AND d.dbid = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
        ORDER BY d.classid, d.objid LIMIT 10) d;
  IF owned IS NOT NULL AND NOT with_owned THEN
    RAISE EXCEPTION 'the role % owns %', who, owned USING ERRCODE = 'dependent_objects_still_exist';
  END IF;
  IF NOT pg_has_role(current_user, who, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', who, current_user);
  END IF;
  EXECUTE format('ALTER ROLE %I NOLOGIN', who);
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.usename = who;
  EXECUTE format('DROP OWNED BY %I', who);
  EXECUTE format('DROP ROLE %I', who);
END $$;
REVOKE EXECUTE ON FUNCTION cn_relay.drop_consumer_role(text, boolean) FROM PUBLIC;
