-- Orders: what was accepted (the ledger), what is to be sent (the outbox), what was tried (the journal), and who did
-- what by hand (the audit).
--
-- Lock order, for everybody: the outbox row, then its ledger row. `orders.actor` is set in the sessions of the program
-- ('worker', 'api', 'operator:<who>'); where it is not, somebody changes rows by hand and the triggers below look after
-- what the program would have done: audit, wake-up, doubt.

CREATE SCHEMA orders;

-- How keys appear outside of the two tables that need them: in the journal, the audit, logs and spans.
CREATE FUNCTION orders.key_hash(idempotency_key text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(encode(sha256(convert_to(idempotency_key, 'UTF8')), 'hex'), 32);

-- True in a session that is not the program's.
CREATE FUNCTION orders.is_by_hand() RETURNS boolean LANGUAGE sql STABLE
RETURN coalesce(current_setting('orders.actor', true), '') = '';

-- Every column beyond those of the worker protocol has a default: an INSERT that names only the key, the document and the digest works.
-- The indexes leave out locked_at and updated_at, so that a heartbeat can be a HOT update
-- (3,984 of 4,995 were).
CREATE TABLE orders.outbox_orders (
  id bigserial PRIMARY KEY,
  idempotency_key text COLLATE "C" NOT NULL UNIQUE,
  order_request_json jsonb NOT NULL,
  request_digest text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'sending', 'succeeded', 'failed', 'aborted')),
  attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  last_error_code text,
  last_error_msg text,
  locked_by text COLLATE "C",
  locked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  next_run_at timestamptz,
  claim_no bigint NOT NULL DEFAULT 0,
  in_doubt boolean NOT NULL DEFAULT false,
  adapter text COLLATE "C",
  instrument text COLLATE "C" GENERATED ALWAYS AS (order_request_json ->> 'instrument') STORED,
  trace_id text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
COMMENT ON COLUMN orders.outbox_orders.attempts IS
  'Tries that ended in failure, lapsed leases included; a budget, which a requeue sets back.';
COMMENT ON COLUMN orders.outbox_orders.claim_no IS
  'Counts claims and never goes back: together with locked_by the token that a worker must show to settle.';
COMMENT ON COLUMN orders.outbox_orders.in_doubt IS
  'The broker may have this order although nobody knows: it is looked up before it is sent again.';
COMMENT ON COLUMN orders.outbox_orders.adapter IS 'NULL: the adapter of the worker (broker.adapter).';

CREATE INDEX outbox_orders_pending ON orders.outbox_orders ((coalesce(next_run_at, created_at)), id)
  WHERE status = 'pending';
CREATE INDEX outbox_orders_failed ON orders.outbox_orders (next_run_at, id) WHERE status = 'failed';
CREATE INDEX outbox_orders_sending ON orders.outbox_orders (id) WHERE status = 'sending';
CREATE INDEX outbox_orders_in_doubt ON orders.outbox_orders (id) WHERE in_doubt;
-- The first open order of each instrument, for orders.serialize_by = instrument.
CREATE INDEX outbox_orders_open ON orders.outbox_orders ((coalesce(instrument, '')), id)
  WHERE status IN ('pending', 'sending', 'failed');

-- response_payload_json is json and not jsonb: a replay gives back the bytes that were stored.
CREATE TABLE orders.idempo_ledger (
  idempotency_key text COLLATE "C" PRIMARY KEY,
  request_digest text COLLATE "C" NOT NULL,
  result_digest text COLLATE "C",
  status text COLLATE "C" NOT NULL DEFAULT 'accepted' CHECK (status IN ('accepted', 'succeeded', 'failed')),
  http_status integer,
  response_payload_json json,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
COMMENT ON COLUMN orders.idempo_ledger.expires_at IS
  'When a settled row may go; it never goes before its outbox row. Set when it is settled.';
-- Retention reads from the oldest on. first_seen_at never changes, so settling does not touch this index.
CREATE INDEX idempo_ledger_first_seen ON orders.idempo_ledger (first_seen_at);

-- One row for each try, also of a worker that was fenced afterwards; a try whose worker vanished is written down by
-- the one that takes its row over.
CREATE TABLE orders.sends (
  outbox_id bigint NOT NULL,
  key_hash text COLLATE "C" NOT NULL,
  claim_no bigint NOT NULL,
  adapter text COLLATE "C" NOT NULL,
  broker_id text COLLATE "C",
  began_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  broker_ref text,
  worker text COLLATE "C" NOT NULL,
  fenced boolean NOT NULL DEFAULT false,
  written_at timestamptz NOT NULL DEFAULT now()
) PARTITION BY RANGE (written_at);
COMMENT ON COLUMN orders.sends.broker_id IS 'The id under which the order went to the broker.';
COMMENT ON COLUMN orders.sends.outcome IS
  'ok, the reason_code of a failure, FOUND, NOT_FOUND (lookups), or LEASE_EXPIRED for a try whose worker vanished.';
CREATE INDEX sends_outbox ON orders.sends (outbox_id, claim_no);

CREATE TABLE orders.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor text NOT NULL,
  action text COLLATE "C" NOT NULL,
  key_hash text COLLATE "C",
  outbox_id bigint,
  before jsonb,
  after jsonb,
  reason text
);
CREATE INDEX audit_outbox ON orders.audit (outbox_id) WHERE outbox_id IS NOT NULL;

-- The kill switch. '*' stands for all.
CREATE TABLE orders.halts (
  adapter text COLLATE "C" NOT NULL DEFAULT '*',
  instrument text COLLATE "C" NOT NULL DEFAULT '*',
  intake_refused boolean NOT NULL DEFAULT false,
  halted_by text NOT NULL,
  halted_at timestamptz NOT NULL DEFAULT now(),
  reason text,
  PRIMARY KEY (adapter, instrument)
);
COMMENT ON COLUMN orders.halts.intake_refused IS 'New orders that it matches are refused (503 HALTED) and not only held.';

-- Workers that run, for health and for `todoke orders stats`. A row is as old as its last sign of life.
CREATE TABLE orders.workers (
  worker text COLLATE "C" PRIMARY KEY,
  adapter text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);

-- The book of the paper broker: what it has executed, so that it can be asked, also after a crash of its worker.
CREATE TABLE orders.paper_book (
  broker_id text COLLATE "C" PRIMARY KEY,
  order_ref text NOT NULL,
  outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('filled', 'partial', 'unfilled', 'rejected')),
  px text COLLATE "C" NOT NULL,
  qty text COLLATE "C" NOT NULL,
  executed_at timestamptz NOT NULL DEFAULT now(),
  copies integer NOT NULL DEFAULT 1
);
COMMENT ON COLUMN orders.paper_book.copies IS 'How often an order of this id has come; one was executed.';

-- Finished outbox rows. A key may come again after its ledger row has gone, so nothing is unique here.
CREATE TABLE orders.outbox_orders_archive (
  archived_at timestamptz NOT NULL DEFAULT now(),
  id bigint NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  order_request_json jsonb NOT NULL,
  request_digest text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  attempts integer NOT NULL,
  last_error_code text,
  last_error_msg text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  expires_at timestamptz,
  claim_no bigint NOT NULL,
  in_doubt boolean NOT NULL,
  adapter text COLLATE "C",
  trace_id text
) PARTITION BY RANGE (archived_at);
CREATE INDEX outbox_orders_archive_id ON orders.outbox_orders_archive (id);
CREATE INDEX outbox_orders_archive_key ON orders.outbox_orders_archive (idempotency_key);

-- Makes the monthly partitions from now to `until`. The number made.
CREATE FUNCTION orders.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  made integer := 0;
  month timestamp;
  parent text;
  child text;
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215466);
  FOR month IN
    SELECT generate_series(date_trunc('month', now() AT TIME ZONE 'UTC'),
                           date_trunc('month', until AT TIME ZONE 'UTC'), interval '1 month')
  LOOP
    FOREACH parent IN ARRAY ARRAY['sends', 'outbox_orders_archive'] LOOP
      child := format('%s_%s', parent, to_char(month, 'YYYY_MM'));
      CONTINUE WHEN to_regclass('orders.' || child) IS NOT NULL;
      -- Made first and attached then: CREATE ... PARTITION OF would lock out every reader and writer.
      EXECUTE format('CREATE TABLE orders.%I (LIKE orders.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
      EXECUTE format('ALTER TABLE orders.%I ATTACH PARTITION orders.%I FOR VALUES FROM (%L) TO (%L)', parent, child,
                     to_char(month, 'YYYY-MM-DD') || ' 00:00:00+00',
                     to_char(month + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
      made := made + 1;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
SELECT orders.ensure_partitions(now() + interval '1 month');

-- What was written down stays as it is.
CREATE FUNCTION orders.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON orders.audit
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON orders.sends
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();

-- For rows of the program only the conditions of these triggers are looked at, no function is called. That is not free:
-- updates of 50,000 rows took 1.2 to 1.6 times as long with them as without, on a busy machine.

-- No session, the program's included, takes a claim number back: a fenced worker would pass again.
CREATE FUNCTION orders.refuse_claim_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'claim_no never goes back (outbox row %)', NEW.id USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER claim_forward BEFORE UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.claim_no < OLD.claim_no) EXECUTE FUNCTION orders.refuse_claim_back();

-- A row taken from its worker by hand may have been sent. One that is put to wait without a time is due at once.
CREATE FUNCTION orders.changing_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'sending' AND NEW.status IN ('pending', 'failed', 'aborted') THEN
    NEW.in_doubt := true;
  END IF;
  IF NEW.status = 'failed' THEN
    NEW.next_run_at := coalesce(NEW.next_run_at, now());
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER changing_by_hand BEFORE UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status AND coalesce(current_setting('orders.actor', true), '') = '')
  EXECUTE FUNCTION orders.changing_by_hand();

-- What the audit keeps of a row: no content.
CREATE FUNCTION orders.audited(o orders.outbox_orders) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', o.status, 'attempts', o.attempts, 'claim_no', o.claim_no, 'in_doubt', o.in_doubt,
  'last_error_code', o.last_error_code, 'next_run_at', o.next_run_at, 'locked_by', o.locked_by,
  'request_digest', o.request_digest);
CREATE FUNCTION orders.audited(l orders.idempo_ledger) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', l.status, 'http_status', l.http_status, 'request_digest', l.request_digest,
  'result_digest', l.result_digest);

CREATE FUNCTION orders.changed_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after)
  VALUES (format('sql:%s', session_user), format('%s %s', lower(TG_OP), TG_TABLE_NAME),
    orders.key_hash(OLD.idempotency_key),
    CASE WHEN TG_TABLE_NAME = 'outbox_orders' THEN (to_jsonb(OLD) ->> 'id')::bigint END, orders.audited(OLD),
    CASE WHEN TG_OP = 'UPDATE' THEN orders.audited(NEW) END);
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'outbox_orders' THEN
    PERFORM pg_notify('orders_pending', '') WHERE to_jsonb(NEW) ->> 'status' = 'pending';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER changed_by_hand AFTER UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER deleted_by_hand AFTER DELETE ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER changed_by_hand AFTER UPDATE ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = ''
        AND (OLD.status, OLD.http_status, OLD.request_digest, OLD.result_digest)
          IS DISTINCT FROM (NEW.status, NEW.http_status, NEW.request_digest, NEW.result_digest))
  EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER deleted_by_hand AFTER DELETE ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();

-- An order that was put in by hand wakes the workers. The program wakes them itself, after its commit: a NOTIFY inside
-- of the transaction halves the rate of one-row commits.
CREATE FUNCTION orders.wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('orders_pending', '');
  RETURN NULL;
END $$;
CREATE TRIGGER wake_workers AFTER INSERT ON orders.outbox_orders FOR EACH STATEMENT
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.wake_workers();

-- A halt is in force as soon as the workers hear of it; they look by themselves twice a second as well.
CREATE FUNCTION orders.tell_halts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('orders_halts', '');
  RETURN NULL;
END $$;
CREATE TRIGGER tell_halts AFTER INSERT OR UPDATE OR DELETE ON orders.halts FOR EACH STATEMENT
  EXECUTE FUNCTION orders.tell_halts();
