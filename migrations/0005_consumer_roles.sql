-- Following the log from outside: a role for each consumer that reads the log and the events and writes its own offset,
-- and nothing else.
--
-- A consumer NAME has the role consumer_NAME. What it may do is granted to that role and not to the group
-- todoke_consumers, because the group belongs to the whole cluster, where other databases may have consumers of their
-- own; it only says who may come in over TCP. For the same reason nothing here makes a role: `todoke consumers add`
-- does, where it may.

-- Roles outside the group see every row, as if there was no policy. Readers of this table see it through the policy's own
-- expressions, which are bound here: no search_path of theirs changes what they mean.
ALTER TABLE cn_relay.consumer_offsets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_row ON cn_relay.consumer_offsets USING (
  'consumer_' || consumer = current_user
  OR NOT coalesce(
    pg_has_role(current_user, (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'todoke_consumers'), 'MEMBER'),
    false));

-- A consumer may go back although it can't touch what a replay clears.
ALTER FUNCTION cn_relay.offset_moved() SECURITY DEFINER SET search_path = pg_catalog;

REVOKE EXECUTE ON FUNCTION cn_relay.lock_log(), cn_relay.check_log_identity(),
  cn_relay.retire(text, timestamptz, "char", text), cn_relay.add_partition(text, text, text, text, text),
  cn_relay.ensure_partitions(timestamptz), cn_relay.offset_moved() FROM PUBLIC;

-- Makes the role of a consumer, or gives the one that is there a new password. `verifier` is the password as
-- scram-sha-256 stores it. The caller needs CREATEROLE and owns these tables.
CREATE FUNCTION cn_relay.put_consumer_role(name text, verifier text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE
  -- Of the 200 connections of an embedded server a consumer gets few; one and a listener are enough.
  connections_max constant integer := 10;
  -- A transaction that is left open keeps vacuum from cleaning up everywhere.
  idle_max constant text := '5min';
  who constant text := 'consumer_' || name;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'todoke_consumers') THEN
    BEGIN
      CREATE ROLE todoke_consumers NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      -- Another database of this cluster has made it meanwhile.
    END;
  END IF;
  IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = who) THEN
    IF NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = 'todoke_consumers'::regrole
                   AND m.member = quote_ident(who)::regrole) THEN
      RAISE EXCEPTION 'the role % is no consumer', who USING ERRCODE = 'duplicate_object';
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', who, verifier);
  ELSE
    EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L CONNECTION LIMIT %s IN ROLE todoke_consumers', who, verifier,
                   connections_max);
  END IF;
  EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', who, idle_max);
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = "$user", public, cn_relay', who, current_database());
  IF NOT has_database_privilege(who, current_database(), 'CONNECT') THEN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), who);
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA cn_relay TO %I', who);
  -- Partitions are read through these; they need no grants of their own.
  EXECUTE format('GRANT SELECT ON cn_relay.events_outbox, cn_relay.events, cn_relay.effective_events TO %I', who);
  EXECUTE format('GRANT SELECT, INSERT (consumer, last_seq, updated_at), UPDATE (last_seq, updated_at) '
                 'ON cn_relay.consumer_offsets TO %I', who);
END $$;
REVOKE EXECUTE ON FUNCTION cn_relay.put_consumer_role(text, text) FROM PUBLIC;
