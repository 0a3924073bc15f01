-- What operators work with: their accounts, background jobs, samples of metrics for plots, and a chain of hashes over
-- everything that was audited.

CREATE FUNCTION cn_names.channel_jobs() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_admin_jobs';
COMMENT ON FUNCTION cn_names.channel_jobs() IS
  'There are background jobs to do, or one has changed';
CREATE FUNCTION cn_names.channel_audit() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_admin_audit';
COMMENT ON FUNCTION cn_names.channel_audit() IS
  'Something was audited';

-- ---------------------------------------------------------------------------------------------- jobs

-- A queue of src/queue; its columns are those of docs/queue.md.
CREATE TABLE cn_admin.jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text COLLATE "C" NOT NULL CHECK (kind ~ '^[a-z][a-z0-9_.]{0,63}$'),
  subject text NOT NULL DEFAULT '' CHECK (octet_length(subject) <= 1024),
  params jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(params) = 'object' AND pg_column_size(params) <= 65536),
  status text COLLATE "C" NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'running', 'failed', 'succeeded', 'aborted', 'cancelled')),
  done bigint NOT NULL DEFAULT 0 CHECK (done >= 0),
  total bigint CHECK (total >= 0),
  state jsonb NOT NULL DEFAULT '{}',
  result jsonb,
  error text CHECK (octet_length(error) <= 2048),
  cancel_asked_at timestamptz,
  created_by text NOT NULL DEFAULT cn_admin.actor(),
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz,
  run_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  in_doubt boolean NOT NULL DEFAULT false,
  claim_no bigint NOT NULL DEFAULT 0,
  locked_by text,
  locked_at timestamptz,
  asked_again boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE cn_admin.jobs IS
  'Work that takes long and runs in the background: who asked for it, how far it is, what came of it. Finished ones stay for 30 days.';
COMMENT ON COLUMN cn_admin.jobs.subject IS 'What it is about, for people: a topic, a request.';
COMMENT ON COLUMN cn_admin.jobs.state IS 'Where the next try goes on; the job''s own.';
COMMENT ON COLUMN cn_admin.jobs.asked_again IS 'Somebody asked for it while it ran: it runs once more.';
COMMENT ON COLUMN cn_admin.jobs.done IS 'How much of total is done; total NULL: nobody knows how much there is.';
CREATE INDEX jobs_due ON cn_admin.jobs (run_at, id) WHERE status IN ('pending', 'failed');
CREATE INDEX jobs_running ON cn_admin.jobs (id) WHERE status = 'running';
CREATE INDEX jobs_finished ON cn_admin.jobs (finished_at) WHERE finished_at IS NOT NULL;
-- Work that makes no sense twice is asked for with a subject: while one is open, another is not added.
CREATE UNIQUE INDEX jobs_open ON cn_admin.jobs (kind, subject)
  WHERE subject <> '' AND status IN ('pending', 'running', 'failed');

-- Adds a job and returns its id, or the id of the one that is open for the same kind and subject. One that runs already may have
-- passed what the caller means: it runs again when it has ended.
CREATE FUNCTION cn_admin.add_job(the_kind text, the_subject text, the_params jsonb) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO cn_admin.jobs AS j (kind, subject, params) VALUES (the_kind, the_subject, the_params)
  ON CONFLICT (kind, subject) WHERE subject <> '' AND status IN ('pending', 'running', 'failed')
  DO UPDATE SET asked_again = j.asked_again OR j.status = 'running'
  RETURNING j.id
$$;

-- Events that are stored already may carry a topic that the node did not take: the job links them, and makes approved requests
-- active.
CREATE FUNCTION cn_admin.link_topic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cn_admin.add_job('topic.link', NEW.topic_id, '{}');
  RETURN NULL;
END $$;
CREATE TRIGGER links_added AFTER INSERT ON cn_relay.node_subscriptions
  FOR EACH ROW WHEN (NEW.enabled) EXECUTE FUNCTION cn_admin.link_topic();
CREATE TRIGGER links_enabled AFTER UPDATE ON cn_relay.node_subscriptions
  FOR EACH ROW WHEN (NEW.enabled AND NOT OLD.enabled) EXECUTE FUNCTION cn_admin.link_topic();

-- By row: a worker that finds nothing to claim must not wake all workers, itself included.
CREATE FUNCTION cn_admin.notify_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_jobs(), '');
  RETURN NULL;
END $$;
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OF status, cancel_asked_at, done ON cn_admin.jobs
  FOR EACH ROW EXECUTE FUNCTION cn_admin.notify_jobs();

-- ---------------------------------------------------------------------------------------------- administrators

CREATE TABLE cn_admin.administrators (
  name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$'),
  password_hash text NOT NULL CHECK (octet_length(password_hash) <= 512),
  role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'moderator', 'operator')),
  is_disabled boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  password_changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_admin.administrators IS 'Who may log in to the Admin API, and what they may do. Passwords are Argon2id hashes.';

CREATE TABLE cn_admin.admin_sessions (
  id_hash text COLLATE "C" PRIMARY KEY CHECK (id_hash ~ '^[0-9a-f]{64}$'),
  name text COLLATE "C" NOT NULL REFERENCES cn_admin.administrators ON DELETE CASCADE,
  csrf_token text COLLATE "C" NOT NULL,
  network text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE cn_admin.admin_sessions IS
  'Who is logged in: the hash of a cookie. Goes at logout, when it is idle or too old, and with a change of the password.';
CREATE INDEX admin_sessions_name ON cn_admin.admin_sessions (name);
CREATE INDEX admin_sessions_expiry ON cn_admin.admin_sessions (expires_at);

CREATE TABLE cn_admin.admin_tokens (
  token_id text COLLATE "C" PRIMARY KEY CHECK (token_id ~ '^[0-9a-f]{16}$'),
  token_hash text COLLATE "C" NOT NULL UNIQUE CHECK (token_hash ~ '^[0-9a-f]{64}$'),
  name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
  role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'moderator', 'operator')),
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL DEFAULT cn_admin.actor(),
  expires_at timestamptz,
  used_at timestamptz,
  revoked_at timestamptz
);
COMMENT ON TABLE cn_admin.admin_tokens IS 'Bearer tokens for scripts that use the Admin API, as hashes.';

-- ---------------------------------------------------------------------------------------------- samples

CREATE TABLE cn_admin.metric_samples (
  series text COLLATE "C" NOT NULL CHECK (octet_length(series) BETWEEN 1 AND 200),
  at timestamptz NOT NULL,
  value double precision NOT NULL,
  PRIMARY KEY (series, at)
);
COMMENT ON TABLE cn_admin.metric_samples IS 'Chosen metrics of the node by the minute, for plots; kept for 25 hours.';
CREATE INDEX metric_samples_at ON cn_admin.metric_samples (at);

-- ---------------------------------------------------------------------------------------------- audit

ALTER TABLE cn_admin.audit ADD COLUMN network text;
COMMENT ON COLUMN cn_admin.audit.network IS 'From which network the change was asked for over HTTP; NULL: by a command or by hand.';
CREATE INDEX audit_subject ON cn_admin.audit (subject, id);

-- From which network a change is asked for: the session's cn_admin.network.
CREATE FUNCTION cn_admin.network() RETURNS text LANGUAGE sql STABLE
RETURN nullif(current_setting('cn_admin.network', true), '');
ALTER TABLE cn_admin.audit ALTER COLUMN network SET DEFAULT cn_admin.network();

ALTER TABLE cn_admin.service_config_history ADD COLUMN network text DEFAULT cn_admin.network();
ALTER TABLE orders.audit ADD COLUMN network text DEFAULT cn_admin.network();
COMMENT ON COLUMN cn_admin.service_config_history.network IS 'As that of cn_admin.audit.';
COMMENT ON COLUMN orders.audit.network IS 'As that of cn_admin.audit.';

-- A time as every API writes it.
CREATE FUNCTION cn_admin.rfc3339(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- Writes what an operator did that no table shows. In the transaction of the change.
CREATE FUNCTION cn_admin.note(the_action text, the_subject text, was jsonb DEFAULT NULL, becomes jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO cn_admin.audit (actor, action, subject, before, after)
  VALUES (cn_admin.actor(), left(the_action, 200), left(the_subject, 1024), was, becomes) RETURNING id
$$;

-- Writes a change of a row to the audit. Arguments: what such a row is called, the columns that name it (`a,b`), those that are
-- left out (`c,d`), the only columns whose change counts (`e,f`; none: all but those left out), and the columns that say who
-- somebody is (`g`): of these the audit, from which nothing can be deleted, keeps SHA-256 in hex.
CREATE FUNCTION cn_admin.note_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind constant text := TG_ARGV[0];
  left_out constant text[] := string_to_array(coalesce(TG_ARGV[2], ''), ',');
  counts constant text[] := string_to_array(coalesce(TG_ARGV[3], ''), ',');
  before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - left_out END;
  after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - left_out END;
  names text := '';
  name text;
BEGIN
  FOREACH name IN ARRAY string_to_array(coalesce(TG_ARGV[4], ''), ',') LOOP
    before := before || jsonb_build_object(name, encode(sha256(convert_to(before ->> name, 'UTF8')), 'hex'));
    after := after || jsonb_build_object(name, encode(sha256(convert_to(after ->> name, 'UTF8')), 'hex'));
  END LOOP;
  IF TG_OP = 'UPDATE' AND counts <> '{}' AND NOT EXISTS (
    SELECT FROM unnest(counts) AS c (key) WHERE before -> c.key IS DISTINCT FROM after -> c.key) THEN
    RETURN NULL;
  END IF;
  IF before = after THEN
    RETURN NULL;
  END IF;
  FOREACH name IN ARRAY string_to_array(TG_ARGV[1], ',') LOOP
    names := names || ' ' || coalesce(coalesce(after, before) ->> name, '');
  END LOOP;
  INSERT INTO cn_admin.audit (actor, action, subject, before, after)
  VALUES (cn_admin.actor(), format('%s %s', kind, CASE TG_OP WHEN 'INSERT' THEN 'add' WHEN 'UPDATE' THEN 'change' ELSE 'remove' END),
    left(kind || names, 1024), before, after);
  RETURN NULL;
END $$;

CREATE TRIGGER audited AFTER UPDATE ON cn_user.accounts
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('account', 'pubkey', 'updated_at', 'status,plan_id,note', 'pubkey');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_user.plans
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('plan', 'plan_id', 'updated_at');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_user.plan_limits
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('plan_limit', 'plan_id,metric');
CREATE TRIGGER audited AFTER INSERT OR DELETE ON cn_user.invites
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('invite', 'note', 'code_hash');
CREATE TRIGGER audited AFTER UPDATE ON cn_user.topic_subscription_requests
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('subscription_request', 'request_id', 'updated_at', 'reviewed_at', 'requester_pubkey');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_admin.policies
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('policy', 'type,version,locale', 'updated_at,content');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_admin.current_policies
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('current_policy', 'type');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_admin.administrators
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('administrator', 'name', 'password_hash');
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_admin.admin_tokens
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('token', 'token_id', 'token_hash,used_at');
CREATE TRIGGER audited AFTER INSERT OR DELETE ON cn_bootstrap.keys
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('key', 'algorithm,pubkey');
-- Subscribers come and go by ref_count alone; what is audited is whether the node takes the topic, and how.
CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON cn_relay.node_subscriptions
  FOR EACH ROW EXECUTE FUNCTION cn_admin.note_row('topic', 'topic_id', 'updated_at,ref_count');

CREATE TABLE cn_admin.audit_chain (
  number bigint PRIMARY KEY,
  source text COLLATE "C" NOT NULL CHECK (source IN ('audit', 'config', 'orders')),
  row_key text COLLATE "C" NOT NULL,
  hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);
COMMENT ON TABLE cn_admin.audit_chain IS
  'A link for each audited row, in the order of commits: the hash is SHA-256 over the hash before, the source and the row, so that no row can be changed, taken out or put in later without a trace.';
COMMENT ON COLUMN cn_admin.audit_chain.row_key IS 'Of cn_admin.audit and orders.audit: id; of cn_admin.service_config_history: service:version:key.';
CREATE UNIQUE INDEX audit_chain_row ON cn_admin.audit_chain (source, row_key);

CREATE TABLE cn_admin.audit_head (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  number bigint NOT NULL,
  hash bytea NOT NULL
);
COMMENT ON TABLE cn_admin.audit_head IS 'The last link of the chain; its lock puts whoever adds one in line.';
INSERT INTO cn_admin.audit_head (number, hash) VALUES (0, '\x0000000000000000000000000000000000000000000000000000000000000000');

-- The hash of a link. The text of a row is that of its jsonb, whose form Postgres keeps, in UTC. Without NULLs, so that a
-- column that a later version adds does not change the hash of older rows.
CREATE FUNCTION cn_admin.link_hash(before bytea, source text, audited jsonb) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN sha256(before || convert_to(source || E'\n' || jsonb_strip_nulls(audited)::text, 'UTF8'));

-- Adds the link of an audited row. Deferred to the end of the transaction: the lock of the head is the last one that a
-- transaction takes, so none waits for a row while it holds it.
CREATE FUNCTION cn_admin.add_link() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC' AS $$
DECLARE
  audited constant jsonb := to_jsonb(NEW);
  last record;
  next_hash bytea;
BEGIN
  SELECT h.number, h.hash INTO last FROM cn_admin.audit_head h FOR UPDATE;
  next_hash := cn_admin.link_hash(last.hash, TG_ARGV[0], audited);
  INSERT INTO cn_admin.audit_chain (number, source, row_key, hash)
  VALUES (last.number + 1, TG_ARGV[0],
    CASE WHEN TG_ARGV[0] = 'config' THEN format('%s:%s:%s', audited ->> 'service', audited ->> 'version', audited ->> 'key')
         ELSE audited ->> 'id' END,
    next_hash);
  UPDATE cn_admin.audit_head SET number = last.number + 1, hash = next_hash;
  PERFORM pg_notify(cn_names.channel_audit(), '');
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER add_link AFTER INSERT ON cn_admin.audit DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION cn_admin.add_link('audit');
CREATE CONSTRAINT TRIGGER add_link AFTER INSERT ON cn_admin.service_config_history DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION cn_admin.add_link('config');
CREATE CONSTRAINT TRIGGER add_link AFTER INSERT ON orders.audit DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION cn_admin.add_link('orders');
-- The row that a link is of; NULL: it is gone.
CREATE FUNCTION cn_admin.audited_row(source text, row_key text) RETURNS jsonb LANGUAGE sql STABLE SET timezone = 'UTC' AS $$
  SELECT to_jsonb(a) FROM cn_admin.audit a WHERE source = 'audit' AND a.id = row_key::bigint
  UNION ALL
  SELECT to_jsonb(o) FROM orders.audit o WHERE source = 'orders' AND o.id = row_key::bigint
  UNION ALL
  SELECT to_jsonb(h) FROM cn_admin.service_config_history h
  WHERE source = 'config' AND h.service = split_part(row_key, ':', 1) AND h.version::text = split_part(row_key, ':', 2)
    AND h.key = substr(row_key, length(split_part(row_key, ':', 1)) + length(split_part(row_key, ':', 2)) + 3)
$$;

CREATE TRIGGER keep_history BEFORE UPDATE OR DELETE OR TRUNCATE ON cn_admin.audit_chain
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();
CREATE TRIGGER keep_history BEFORE DELETE OR TRUNCATE ON cn_admin.audit_head
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();

-- A job as the Admin API shows it. Without state and claim, which are its worker's.
CREATE FUNCTION cn_admin.job_json(j cn_admin.jobs) RETURNS json LANGUAGE sql STABLE
RETURN CASE WHEN j.id IS NOT NULL THEN json_build_object('id', j.id, 'kind', j.kind, 'subject', j.subject, 'params', j.params,
  'status', j.status, 'done', j.done, 'total', j.total, 'attempts', j.attempts, 'result', j.result, 'error', j.error,
  'cancel_asked_at', cn_admin.rfc3339(j.cancel_asked_at), 'created_by', j.created_by,
  'created_at', cn_admin.rfc3339(j.created_at), 'started_at', cn_admin.rfc3339(j.started_at),
  'finished_at', cn_admin.rfc3339(j.finished_at)) END;

-- ---------------------------------------------------------------------------------------------- grants

-- These act with the rights of their owner.
REVOKE EXECUTE ON FUNCTION cn_admin.note_row() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION cn_admin.add_link() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION cn_admin.note(text, text, jsonb, jsonb) FROM PUBLIC;

-- Grants `node_role` what a node needs: it reads and writes rows, and calls the functions. It can't change the schema, set the
-- log's sequence, make roles, change what is append-only (audit, journal, the history of the configuration), or choose the
-- role and the time of an audit row. Repeats itself without harm; the owner calls it after each migration.
CREATE FUNCTION cn_admin.grant_node(node_role name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  append_only constant regclass[] := ARRAY['orders.audit', 'orders.sends']::regclass[];
  audit_columns constant text := 'actor, action, key_hash, outbox_id, before, after, reason';
  read_only constant regclass[] := ARRAY['cn_admin.audit', 'cn_admin.audit_chain', 'cn_admin.audit_head',
    'cn_admin.service_config_history', 'todoke.schema_migrations']::regclass[];
  schema text;
  relation regclass;
  trigger_function regprocedure;
BEGIN
  FOREACH schema IN ARRAY ARRAY['todoke', 'cn_admin', 'cn_relay', 'cn_search', 'cn_user', 'cn_bootstrap', 'orders'] LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', schema, node_role);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', schema, node_role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %I TO %I', schema, node_role);
    -- A trigger fires without this right. With it, the role could put one that acts as the owner on a temporary table of its
    -- own, and so write history that never happened.
    FOR trigger_function IN
      SELECT p.oid FROM pg_proc p WHERE p.pronamespace = schema::regnamespace AND p.prorettype = 'trigger'::regtype
    LOOP
      EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %I', trigger_function, node_role);
    END LOOP;
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
