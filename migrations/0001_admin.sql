-- Names that the program, the database and its operators share: advisory locks and channels of NOTIFY. Everybody calls these
-- functions and nobody writes the number or the channel itself, so that a wrong name is an error. The planner puts their values
-- in their place; a call costs nothing. The program listens to the channels of src/pg/channels.hpp, which a test compares with
-- these.
CREATE SCHEMA cn_names;
GRANT USAGE ON SCHEMA cn_names TO PUBLIC;

-- Numbers count on from the word "todoke" in ASCII less one: no other program is likely to use them.
CREATE FUNCTION cn_names.lock_migrations() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215460;
COMMENT ON FUNCTION cn_names.lock_migrations() IS
  'Whoever migrates, one at a time. Session. src/pg/migrations.sql has the number too: it takes the lock before there is a schema';
CREATE FUNCTION cn_names.lock_log() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215461;
COMMENT ON FUNCTION cn_names.lock_log() IS
  'Whoever appends to the log or moves it, so that the order of seq is the order of commits. Transaction';
CREATE FUNCTION cn_names.lock_relay_partitions() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215462;
COMMENT ON FUNCTION cn_names.lock_relay_partitions() IS
  'Whoever makes partitions and indexes of the relay. Transaction';
CREATE FUNCTION cn_names.lock_ephemeral() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215463;
COMMENT ON FUNCTION cn_names.lock_ephemeral() IS
  'Whoever sends ephemeral events, so that the order of ids is the order of commits. Transaction';
CREATE FUNCTION cn_names.lock_retention() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215464;
COMMENT ON FUNCTION cn_names.lock_retention() IS
  'The process that empties the log. Session';
CREATE FUNCTION cn_names.lock_rebuild() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215465;
COMMENT ON FUNCTION cn_names.lock_rebuild() IS
  'The process that rebuilds the search index. Session';
CREATE FUNCTION cn_names.lock_orders_partitions() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215466;
COMMENT ON FUNCTION cn_names.lock_orders_partitions() IS
  'Whoever makes partitions of orders. Transaction';
CREATE FUNCTION cn_names.lock_instruments() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215470;
COMMENT ON FUNCTION cn_names.lock_instruments() IS
  'The worker that looks for the first order of each instrument. Transaction';
CREATE FUNCTION cn_names.lock_archive() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215471;
COMMENT ON FUNCTION cn_names.lock_archive() IS
  'The worker that archives finished orders. Transaction';
CREATE FUNCTION cn_names.lock_ledger() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215472;
COMMENT ON FUNCTION cn_names.lock_ledger() IS
  'The worker that purges the ledger. Transaction';

CREATE FUNCTION cn_names.lock_purge() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215473;
COMMENT ON FUNCTION cn_names.lock_purge() IS
  'The process that purges events. Session';

CREATE FUNCTION cn_names.channel_config() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_admin_config';
COMMENT ON FUNCTION cn_names.channel_config() IS
  'The live configuration has changed: service:version';
CREATE FUNCTION cn_names.channel_log() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_outbox';
COMMENT ON FUNCTION cn_names.channel_log() IS
  'The log has grown: its highest seq. Consumers from outside listen, too';
CREATE FUNCTION cn_names.channel_topics() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_topics';
COMMENT ON FUNCTION cn_names.channel_topics() IS
  'The set of topics has changed';
CREATE FUNCTION cn_names.channel_purged() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_purged';
COMMENT ON FUNCTION cn_names.channel_purged() IS
  'Events were purged: what relays keep of them in memory is stale. The newest ingested_seq of them; empty: nobody knows it';
CREATE FUNCTION cn_names.channel_ephemeral() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_ephemeral';
COMMENT ON FUNCTION cn_names.channel_ephemeral() IS
  'There are ephemeral events for the other relays';
CREATE FUNCTION cn_names.channel_gossip() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_gossip';
COMMENT ON FUNCTION cn_names.channel_gossip() IS
  'The list of gossip peers has changed';
CREATE FUNCTION cn_names.channel_blocks() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_relay_blocks';
COMMENT ON FUNCTION cn_names.channel_blocks() IS
  'The operator''s blocks have changed';
CREATE FUNCTION cn_names.channel_orders_pending() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'orders_pending';
COMMENT ON FUNCTION cn_names.channel_orders_pending() IS
  'There are orders to send';
CREATE FUNCTION cn_names.channel_orders_settled() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'orders_settled';
COMMENT ON FUNCTION cn_names.channel_orders_settled() IS
  'Orders were settled';
CREATE FUNCTION cn_names.channel_orders_halts() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'orders_halts';
COMMENT ON FUNCTION cn_names.channel_orders_halts() IS
  'A halt was set or lifted';

-- The schema cn_admin: what operators change while the node runs, and the record of it.
--
-- Triggers do all the bookkeeping, so that a change by hand has the same effect as one by the program: versions count by
-- themselves, the history gets a row for each changed key in the same transaction, and NOTIFY cn_admin_config
-- 'service:version' tells every node.
CREATE SCHEMA cn_admin;

-- ---------------------------------------------------------------------------------------------- tables

CREATE TABLE cn_admin.service_configs (
  service    text PRIMARY KEY,
  version    bigint NOT NULL DEFAULT 1 CHECK (version > 0),
  config     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(config) = 'object'),
  updated_at timestamptz NOT NULL DEFAULT now(),
  updated_by text
);
COMMENT ON TABLE cn_admin.service_configs IS
  'The database''s layer of the configuration, one row for each service. A writer that compares the version can not overwrite another''s change.';
COMMENT ON COLUMN cn_admin.service_configs.version IS 'Counts up with every change';
COMMENT ON COLUMN cn_admin.service_configs.config IS
  'Values by full key (relay.name), each as it would be written in the environment; only live keys of the service are taken';
COMMENT ON COLUMN cn_admin.service_configs.updated_by IS 'Who made the last change';

CREATE TABLE cn_admin.service_config_history (
  service    text NOT NULL,
  version    bigint NOT NULL,
  key        text NOT NULL,
  before     jsonb,
  after      jsonb,
  changed_at timestamptz NOT NULL DEFAULT now(),
  changed_by text NOT NULL,
  db_role    text NOT NULL DEFAULT session_user,
  PRIMARY KEY (service, key, version),
  CHECK (changed_by NOT LIKE 'sql:%' OR changed_by = 'sql:' || db_role)
);
COMMENT ON TABLE cn_admin.service_config_history IS
  'Every change of service_configs, a row for each key; append-only. Going back to a version: the first "before" after it';
COMMENT ON COLUMN cn_admin.service_config_history.version IS 'The version that the change made';
COMMENT ON COLUMN cn_admin.service_config_history.before IS 'NULL: the database had no value of the key';
COMMENT ON COLUMN cn_admin.service_config_history.changed_by IS
  'Who made the change, as the role db_role says; sql: and that role itself, where the session named nobody';
COMMENT ON COLUMN cn_admin.service_config_history.db_role IS
  'The role of the database that made the change; only the trigger writes here, so nobody chooses it';
COMMENT ON COLUMN cn_admin.service_config_history.after IS 'NULL: the database has no value of the key any more';

CREATE TABLE cn_admin.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  before jsonb,
  after jsonb,
  db_role text NOT NULL DEFAULT session_user,
  CHECK (actor NOT LIKE 'sql:%' OR actor = 'sql:' || db_role)
);
COMMENT ON TABLE cn_admin.audit IS
  'What operators changed outside of service_configs and orders, which have records of their own: a row for each change, in its transaction, by command or by hand. Append-only';
COMMENT ON COLUMN cn_admin.audit.actor IS
  'Who made the change, as the role db_role says; sql: and that role itself, where the session named nobody';
COMMENT ON COLUMN cn_admin.audit.subject IS 'What was changed, such as "pubkey <hex>"';
COMMENT ON COLUMN cn_admin.audit.db_role IS
  'The role of the database that made the change; only triggers write here, so nobody chooses it';

-- ---------------------------------------------------------------------------------------------- functions

-- Who makes the change: the session's cn_admin.actor; without one, the user of the database.
CREATE FUNCTION cn_admin.actor() RETURNS text LANGUAGE sql STABLE
RETURN coalesce(nullif(current_setting('cn_admin.actor', true), ''), format('sql:%s', session_user));

-- Refuses the statement. Also for TRUNCATE, which fires no triggers of rows and so would leave no history.
CREATE FUNCTION cn_admin.keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is not allowed: the history stays whole', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;

-- Sets version, time and actor of a changed row. A row that was deleted and made again goes on where its history ends.
CREATE FUNCTION cn_admin.count_config_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.version := 1 + coalesce((SELECT max(h.version)
                                   FROM cn_admin.service_config_history h
                                  WHERE h.service = NEW.service), 0);
  ELSIF NEW.config IS DISTINCT FROM OLD.config THEN
    NEW.version := OLD.version + 1;
  ELSE
    NEW.version := OLD.version;
    RETURN NEW;
  END IF;
  NEW.updated_at := now();
  NEW.updated_by := cn_admin.actor();
  RETURN NEW;
END $$;

-- Writes the history of a change and notifies the nodes. An update that changes no value leaves no trace. SECURITY DEFINER: the
-- role that a node runs as can't write the history itself.
CREATE FUNCTION cn_admin.note_config_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was jsonb := '{}';
  becomes jsonb := '{}';
  of_service text;
  of_version bigint;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    was := OLD.config;
    of_service := OLD.service;
    of_version := OLD.version + 1;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    becomes := NEW.config;
    of_service := NEW.service;
    of_version := NEW.version;
  END IF;
  IF TG_OP = 'UPDATE' AND was = becomes THEN
    RETURN NULL;
  END IF;
  INSERT INTO cn_admin.service_config_history (service, version, key, before, after, changed_by)
  SELECT of_service, of_version, k.key, was -> k.key, becomes -> k.key, cn_admin.actor()
    FROM (SELECT jsonb_object_keys(was) UNION SELECT jsonb_object_keys(becomes)) AS k (key)
   WHERE was -> k.key IS DISTINCT FROM becomes -> k.key;
  PERFORM pg_notify(cn_names.channel_config(), format('%s:%s', of_service, of_version));
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- triggers

CREATE TRIGGER keep_history BEFORE UPDATE OR DELETE OR TRUNCATE ON cn_admin.service_config_history
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();
CREATE TRIGGER keep_history BEFORE UPDATE OR DELETE OR TRUNCATE ON cn_admin.audit
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();
CREATE TRIGGER keep_history BEFORE TRUNCATE ON cn_admin.service_configs
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();
CREATE TRIGGER count_config_version BEFORE INSERT OR UPDATE ON cn_admin.service_configs
  FOR EACH ROW EXECUTE FUNCTION cn_admin.count_config_version();
CREATE TRIGGER note_config_change AFTER INSERT OR UPDATE OR DELETE ON cn_admin.service_configs
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_config_change();

-- ---------------------------------------------------------------------------------------------- grants

-- It acts with the rights of its owner, so nobody calls it but its trigger.
REVOKE EXECUTE ON FUNCTION cn_admin.note_config_change() FROM PUBLIC;
