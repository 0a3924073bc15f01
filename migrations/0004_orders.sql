-- The schema orders: what was accepted (the ledger), what is to be sent (the outbox), what was tried (the journal), who did
-- what by hand (the audit), and what a broker that speaks FIX was told and has answered.
--
-- Lock order, for everybody: the outbox row, then its ledger row.
--
-- Changes by hand. `orders.actor` is set in the sessions of the program ('worker', 'api', 'operator:<who>'); where it is not,
-- somebody changes rows by hand, and the triggers do what the program would have done: audit, wake-up, doubt. For rows of the
-- program they cost their conditions (WHEN) and never a function call. That is not free: updates of 50,000 rows took 1.2 to
-- 1.6 times as long with them as without, on a busy machine; inserts of 5,000 orders took as long.
CREATE SCHEMA orders;

-- ---------------------------------------------------------------------------------------------- tables: outbox and ledger

-- The indexes leave out locked_at and updated_at, so that a heartbeat can be a HOT update (3,984 of 4,995 were).
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
  key_was_taken boolean NOT NULL DEFAULT false,
  adapter text COLLATE "C",
  instrument text COLLATE "C" GENERATED ALWAYS AS (order_request_json ->> 'instrument') STORED,
  trace_id text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
COMMENT ON TABLE orders.outbox_orders IS
  'What is to be sent, one row for each order. An INSERT that names only the key, the document and the digest works: every other column has a default.';
COMMENT ON COLUMN orders.outbox_orders.attempts IS
  'Tries that ended in failure, lapsed leases included; a budget, which a requeue sets back.';
COMMENT ON COLUMN orders.outbox_orders.expires_at IS
  'Of the worker protocol, for those who enqueue by hand. Nothing reads it: how long a finished row stays follows from its status and updated_at. It goes to the archive with the row.';
COMMENT ON COLUMN orders.outbox_orders.claim_no IS
  'Counts claims and never goes back: together with locked_by the token that a worker must show to settle.';
COMMENT ON COLUMN orders.outbox_orders.key_was_taken IS
  'The broker said that it had an order of this key when no try of ours can have reached it. From then on the same word is no sign that it has ours. Never goes back, also not by a requeue.';
COMMENT ON COLUMN orders.outbox_orders.in_doubt IS
  'The broker may have this order although nobody knows: it is looked up before it is sent again.';
COMMENT ON COLUMN orders.outbox_orders.adapter IS
  'NULL: the adapter of the worker (broker.adapter). Of an order in doubt: the one that has tried it.';
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
COMMENT ON TABLE orders.idempo_ledger IS
  'What was accepted under each key and what came of it: a key that comes again gets the stored answer, or a conflict.';
COMMENT ON COLUMN orders.idempo_ledger.expires_at IS
  'When a settled row may go; it never goes before its outbox row, nor while the broker works on the order. Set when it is settled.';
-- Retention reads from the oldest on. first_seen_at never changes, so settling does not touch this index.
CREATE INDEX idempo_ledger_first_seen ON orders.idempo_ledger (first_seen_at);

-- ---------------------------------------------------------------------------------------------- tables: what happened

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
  written_at timestamptz NOT NULL DEFAULT now(),
  note text
) PARTITION BY RANGE (written_at);
COMMENT ON TABLE orders.sends IS
  'The journal: one row for each try, also of a worker that was fenced afterwards; a try whose worker vanished is written down by the one that takes its row over. Append-only.';
COMMENT ON COLUMN orders.sends.broker_id IS 'The id under which the order went to the broker.';
COMMENT ON COLUMN orders.sends.outcome IS
  'ok, the reason_code of a failure, FOUND for a look-up that settled the order, or LEASE_EXPIRED for a try whose worker vanished.';
COMMENT ON COLUMN orders.sends.note IS
  'What could not be read of the answer of a broker that took the order, by name and without content.';
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
  reason text,
  db_role text COLLATE "C" NOT NULL DEFAULT session_user,
  CHECK (actor NOT LIKE 'sql:%' OR actor = 'sql:' || db_role)
);
COMMENT ON TABLE orders.audit IS
  'Every change that a person made, by command or by hand, in the transaction of the change and without the order''s content. Append-only.';
COMMENT ON COLUMN orders.audit.actor IS 'Who did it, as the role db_role says; sql: and that role itself for a change by hand.';
COMMENT ON COLUMN orders.audit.db_role IS
  'The role of the database that wrote the row. A node may not name it, nor the time: it can say who did something, and not that another role says so.';
CREATE INDEX audit_outbox ON orders.audit (outbox_id) WHERE outbox_id IS NOT NULL;

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
  trace_id text,
  http_status integer,
  result_digest text COLLATE "C",
  response_payload_json json
) PARTITION BY RANGE (archived_at);
COMMENT ON TABLE orders.outbox_orders_archive IS
  'Finished outbox rows, with what the ledger said of the order when its row went. A key may come again after its ledger row has gone, so nothing is unique here.';
COMMENT ON COLUMN orders.outbox_orders_archive.response_payload_json IS 'NULL: the ledger still has the result.';
CREATE INDEX outbox_orders_archive_id ON orders.outbox_orders_archive (id);
CREATE INDEX outbox_orders_archive_key ON orders.outbox_orders_archive (idempotency_key);

-- ---------------------------------------------------------------------------------------------- tables: workers

CREATE TABLE orders.halts (
  adapter text COLLATE "C" NOT NULL DEFAULT '*',
  instrument text COLLATE "C" NOT NULL DEFAULT '*',
  intake_refused boolean NOT NULL DEFAULT false,
  halted_by text NOT NULL,
  halted_at timestamptz NOT NULL DEFAULT now(),
  reason text,
  PRIMARY KEY (adapter, instrument)
);
COMMENT ON TABLE orders.halts IS
  'The kill switch: no worker sends what a row matches; ''*'' stands for all. In force as soon as the workers hear of it; they look by themselves twice a second as well.';
COMMENT ON COLUMN orders.halts.intake_refused IS 'New orders that it matches are refused (503 HALTED) and not only held.';

CREATE TABLE orders.workers (
  worker text COLLATE "C" PRIMARY KEY,
  adapter text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now(),
  lease_sec double precision NOT NULL DEFAULT 0,
  breaker text COLLATE "C" NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'ramping', 'probing', 'open'))
);
COMMENT ON TABLE orders.workers IS
  'Workers that run, for health and for `todoke orders stats`. A row is as old as its last sign of life.';
COMMENT ON COLUMN orders.workers.lease_sec IS
  'Its outbox.lock_lease_sec. While it shows signs of life its orders are not taken over before, whoever asks.';
COMMENT ON COLUMN orders.workers.breaker IS 'Each worker has a breaker of its own, in its memory.';

CREATE TABLE orders.paper_book (
  broker_id text COLLATE "C" NOT NULL,
  outbox_id bigint NOT NULL,
  order_ref text NOT NULL,
  outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('filled', 'partial', 'unfilled', 'rejected')),
  px text COLLATE "C" NOT NULL,
  qty text COLLATE "C" NOT NULL,
  executed_at timestamptz NOT NULL DEFAULT now(),
  copies integer NOT NULL DEFAULT 1,
  PRIMARY KEY (broker_id, outbox_id)
);
COMMENT ON TABLE orders.paper_book IS
  'The book of the paper broker: what it has executed, so that it can be asked, also after a crash of its worker.';
COMMENT ON COLUMN orders.paper_book.outbox_id IS 'Tells apart orders that had the same key one after the other.';
COMMENT ON COLUMN orders.paper_book.copies IS 'How often an order of this id has come; one was executed.';

-- ---------------------------------------------------------------------------------------------- tables: FIX

CREATE TABLE orders.fix_sessions (
  session text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C",
  epoch bigint NOT NULL DEFAULT 0,
  leased_until timestamptz,
  next_out bigint NOT NULL DEFAULT 1,
  next_in bigint NOT NULL DEFAULT 1,
  updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);
COMMENT ON TABLE orders.fix_sessions IS 'Which worker has a FIX session, and how far its numbers are.';
COMMENT ON COLUMN orders.fix_sessions.session IS 'SenderCompID->TargetCompID';
COMMENT ON COLUMN orders.fix_sessions.owner IS 'The worker that has the connection; NULL: it was given up in good order.';
COMMENT ON COLUMN orders.fix_sessions.epoch IS 'Counts owners and never goes back: who shows an older one writes nothing.';
COMMENT ON COLUMN orders.fix_sessions.next_out IS
  'At least the number of the next message out. It runs ahead while somebody has the session: a gap is filled when asked for.';
COMMENT ON COLUMN orders.fix_sessions.next_in IS
  'At most the number of the next message in: every report before it is in fix_reports. Later ones are asked for again.';

CREATE TABLE orders.fix_orders (
  session text COLLATE "C" NOT NULL,
  cl_ord_id text COLLATE "C" NOT NULL,
  outbox_id bigint NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  reports_stored bigint NOT NULL DEFAULT 0,
  reports_applied bigint NOT NULL DEFAULT 0,
  touched_at timestamptz NOT NULL DEFAULT now(),
  is_watched boolean NOT NULL DEFAULT true,
  asked_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (session, cl_ord_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE orders.fix_orders IS
  'Which orders went out on a session. Written before an order leaves, so that whatever comes back finds its order.';
COMMENT ON COLUMN orders.fix_orders.reports_applied IS
  'How many of its reports the ledger is known to show. Fewer than stored: somebody has to look.';
CREATE INDEX fix_orders_unapplied ON orders.fix_orders (session, cl_ord_id) WHERE reports_stored > reports_applied;
COMMENT ON COLUMN orders.fix_orders.is_watched IS
  'It may be in doubt, or the broker may work on it: the worker that has the session asks about it now and then.';
COMMENT ON COLUMN orders.fix_orders.asked_at IS 'When it went out, or was its turn to be asked about last.';
CREATE INDEX fix_orders_watched ON orders.fix_orders (session, asked_at) WHERE is_watched;
CREATE INDEX fix_orders_touched ON orders.fix_orders (touched_at);

CREATE TABLE orders.fix_reports (
  id bigint GENERATED ALWAYS AS IDENTITY,
  session text COLLATE "C" NOT NULL,
  cl_ord_id text COLLATE "C" NOT NULL,
  exec_id text COLLATE "C" NOT NULL,
  order_id text,
  exec_type text,
  exec_ref_id text,
  ord_status text,
  ord_rej_reason text,
  last_qty text,
  last_px text,
  cum_qty text,
  avg_px text,
  transact_time text,
  text text,
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (session, cl_ord_id, exec_id)
);
COMMENT ON TABLE orders.fix_reports IS
  'ExecutionReports, each once, and of each order the last answer to a status request. Amounts as the broker wrote them.';
CREATE INDEX fix_reports_received ON orders.fix_reports (received_at);

CREATE TABLE orders.fix_reports_archive (
  archived_at timestamptz NOT NULL DEFAULT now(),
  outbox_id bigint,
  session text COLLATE "C" NOT NULL,
  cl_ord_id text COLLATE "C" NOT NULL,
  exec_id text COLLATE "C" NOT NULL,
  order_id text,
  exec_type text,
  exec_ref_id text,
  ord_status text,
  ord_rej_reason text,
  last_qty text,
  last_px text,
  cum_qty text,
  avg_px text,
  transact_time text,
  text text,
  received_at timestamptz NOT NULL
) PARTITION BY RANGE (archived_at);
COMMENT ON TABLE orders.fix_reports_archive IS
  'ExecutionReports of orders that are over, and of those whose ClOrdID went to a later order.';
COMMENT ON COLUMN orders.fix_reports_archive.outbox_id IS 'NULL: of an order that did not go out from here.';
CREATE INDEX fix_reports_archive_outbox ON orders.fix_reports_archive (outbox_id);

-- ---------------------------------------------------------------------------------------------- functions: reading

-- How keys appear outside of the two tables that need them: in the journal, the audit, logs and spans.
CREATE FUNCTION orders.key_hash(idempotency_key text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(encode(sha256(convert_to(idempotency_key, 'UTF8')), 'hex'), 32);

-- How content appears in the audit: one can see whether it was changed, and nothing else.
CREATE FUNCTION orders.content_hash(content text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(encode(sha256(convert_to(content, 'UTF8')), 'hex'), 32);

-- What the audit keeps of an outbox row: no content.
CREATE FUNCTION orders.audited(o orders.outbox_orders) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', o.status, 'attempts', o.attempts, 'claim_no', o.claim_no, 'in_doubt', o.in_doubt,
  'last_error_code', o.last_error_code, 'next_run_at', o.next_run_at, 'locked_by', o.locked_by,
  'request_digest', o.request_digest, 'order_hash', orders.content_hash(o.order_request_json::text));

-- What the audit keeps of a ledger row: no content.
CREATE FUNCTION orders.audited(l orders.idempo_ledger) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', l.status, 'http_status', l.http_status, 'request_digest', l.request_digest,
  'result_digest', l.result_digest, 'expires_at', l.expires_at,
  'result_hash', orders.content_hash(l.response_payload_json::text));

-- Whether the broker may still fill the order.
CREATE FUNCTION orders.is_working(l orders.idempo_ledger) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN l.status = 'succeeded' AND coalesce((l.response_payload_json -> 'warnings')::jsonb ? 'WORKING', false);

-- Whether the adapter has tried the order. Where nothing has told yet, as with one that is being sent, it has not.
CREATE FUNCTION orders.was_tried_by(o orders.outbox_orders, tried_by text) RETURNS boolean LANGUAGE sql STABLE
RETURN o.adapter = tried_by OR EXISTS (SELECT FROM orders.sends s WHERE s.outbox_id = o.id AND s.adapter = tried_by);

-- The filter of `todoke orders list` and `requeue`: NULL means any. Inlined, but for the adapter.
CREATE FUNCTION orders.matches(o orders.outbox_orders, only_status text, only_in_doubt boolean, only_instrument text,
  only_adapter text, since timestamptz, until timestamptz) RETURNS boolean LANGUAGE sql STABLE
RETURN (only_status IS NULL OR o.status = only_status) AND (NOT only_in_doubt OR o.in_doubt)
  AND (only_instrument IS NULL OR o.instrument = only_instrument)
  AND (since IS NULL OR o.created_at >= since) AND (until IS NULL OR o.created_at < until)
  AND (only_adapter IS NULL OR orders.was_tried_by(o, only_adapter));

-- ---------------------------------------------------------------------------------------------- functions: partitions

-- Makes the monthly partitions from now to `until`, at most a year ahead. Returns how many it made.
CREATE FUNCTION orders.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made integer := 0;
  month timestamp;
  parent text;
  child text;
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_orders_partitions());
  FOR month IN
    SELECT generate_series(date_trunc('month', now() AT TIME ZONE 'UTC'),
                           date_trunc('month', least(until, now() + interval '1 year') AT TIME ZONE 'UTC'),
                           interval '1 month')
  LOOP
    FOREACH parent IN ARRAY ARRAY['sends', 'outbox_orders_archive', 'fix_reports_archive'] LOOP
      child := format('%s_%s', parent, to_char(month, 'YYYY_MM'));
      CONTINUE WHEN to_regclass('orders.' || child) IS NOT NULL;
      -- Made first and attached then: CREATE ... PARTITION OF would lock out every reader and writer.
      EXECUTE format('CREATE TABLE orders.%I (LIKE orders.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
      IF parent = 'sends' THEN
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON orders.%I'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only()', child);
      END IF;
      EXECUTE format('ALTER TABLE orders.%I ATTACH PARTITION orders.%I FOR VALUES FROM (%L) TO (%L)', parent, child,
                     to_char(month, 'YYYY-MM-DD') || ' 00:00:00+00',
                     to_char(month + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
      made := made + 1;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;

-- The partitions of journal and archives whose month ended `months` months ago or earlier. Never one of the last month.
CREATE FUNCTION orders.old_partitions(months integer) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.oid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent IN ('orders.sends'::regclass, 'orders.outbox_orders_archive'::regclass,
                        'orders.fix_reports_archive'::regclass)
    AND to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month'
          <= (now() AT TIME ZONE 'UTC') - make_interval(months => greatest(months, 1))
  ORDER BY 1
$$;

-- Drops a partition that old_partitions(1) names. Waits half a second at most for whoever reads it.
CREATE FUNCTION orders.drop_old_partition(partition text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
BEGIN
  IF partition NOT IN (SELECT orders.old_partitions(1)) THEN
    RAISE EXCEPTION '% is no old partition', partition USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  EXECUTE format('DROP TABLE %s', partition);
END $$;

-- ---------------------------------------------------------------------------------------------- functions of triggers

-- Refuses the statement: what was written down stays as it is.
CREATE FUNCTION orders.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

-- Refuses a claim number that goes back, also by the program: a fenced worker would pass again.
CREATE FUNCTION orders.refuse_claim_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'claim_no never goes back (outbox row %)', NEW.id USING ERRCODE = 'check_violation';
END $$;

-- Makes a failed row without a time due at once: workers find such rows by their time and would never find this one.
CREATE FUNCTION orders.due_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.next_run_at := now();
  RETURN NEW;
END $$;

-- A row that was taken from its worker by hand may have been sent, by that worker's adapter and no other.
CREATE FUNCTION orders.changing_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'sending' AND NEW.status IN ('pending', 'failed', 'aborted') THEN
    NEW.in_doubt := true;
    NEW.adapter := coalesce(NEW.adapter, (SELECT w.adapter FROM orders.workers w WHERE w.worker = OLD.locked_by));
  END IF;
  RETURN NEW;
END $$;

-- Writes a change by hand of the outbox or the ledger to the audit, and wakes the workers for an order that became pending.
CREATE FUNCTION orders.changed_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN orders.audited(OLD) END;
  after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN orders.audited(NEW) END;
  changed jsonb := CASE WHEN TG_OP = 'INSERT' THEN to_jsonb(NEW) ELSE to_jsonb(OLD) END;
BEGIN
  INSERT INTO orders.audit (actor, action, key_hash, outbox_id, before, after)
  VALUES (format('sql:%s', session_user), format('%s %s', lower(TG_OP), TG_TABLE_NAME),
    orders.key_hash(changed ->> 'idempotency_key'),
    CASE WHEN TG_TABLE_NAME = 'outbox_orders' THEN (changed ->> 'id')::bigint END, before, after);
  IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'outbox_orders' AND after ->> 'status' = 'pending' THEN
    PERFORM pg_notify(cn_names.channel_orders_pending(), '');
  END IF;
  RETURN NULL;
END $$;

-- Writes a change by hand of the kill switch to the audit, whole: it holds no content.
CREATE FUNCTION orders.halt_changed_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO orders.audit (actor, action, before, after)
  VALUES (format('sql:%s', session_user), format('%s %s', lower(TG_OP), TG_TABLE_NAME),
    CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END);
  RETURN NULL;
END $$;

-- One row of the audit says that everything went. Nothing of the program truncates.
CREATE FUNCTION orders.truncated_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO orders.audit (actor, action)
  VALUES (format('sql:%s', session_user), format('truncate %s', TG_TABLE_NAME));
  RETURN NULL;
END $$;

-- Wakes the workers for an order that was inserted by hand. The program wakes them itself, after its commit: a NOTIFY inside
-- of the transaction halves the rate of one-row commits.
CREATE FUNCTION orders.wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_orders_pending(), '');
  RETURN NULL;
END $$;

-- Tells the workers that the kill switch has changed.
CREATE FUNCTION orders.tell_halts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_orders_halts(), '');
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- triggers

CREATE TRIGGER claim_forward BEFORE UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.claim_no < OLD.claim_no) EXECUTE FUNCTION orders.refuse_claim_back();
CREATE TRIGGER due_at_once BEFORE INSERT OR UPDATE OF status, next_run_at ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.status = 'failed' AND NEW.next_run_at IS NULL) EXECUTE FUNCTION orders.due_at_once();

CREATE TRIGGER changing_by_hand BEFORE UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.status IS DISTINCT FROM OLD.status AND coalesce(current_setting('orders.actor', true), '') = '')
  EXECUTE FUNCTION orders.changing_by_hand();
CREATE TRIGGER inserted_by_hand AFTER INSERT ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER changed_by_hand AFTER UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER deleted_by_hand AFTER DELETE ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.outbox_orders
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();
CREATE TRIGGER wake_workers AFTER INSERT ON orders.outbox_orders FOR EACH STATEMENT
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.wake_workers();

CREATE TRIGGER inserted_by_hand AFTER INSERT ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER changed_by_hand AFTER UPDATE ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER deleted_by_hand AFTER DELETE ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.idempo_ledger
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();

CREATE TRIGGER changed_by_hand AFTER INSERT OR UPDATE OR DELETE ON orders.halts FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.halt_changed_by_hand();
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.halts
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();
CREATE TRIGGER tell_halts AFTER INSERT OR UPDATE OR DELETE ON orders.halts FOR EACH STATEMENT
  EXECUTE FUNCTION orders.tell_halts();
CREATE TRIGGER tell_halts_truncated AFTER TRUNCATE ON orders.halts
  FOR EACH STATEMENT EXECUTE FUNCTION orders.tell_halts();

-- Audit and journal are append-only, each partition of the journal, too: a trigger for each row is passed on to every
-- partition, those of a statement are not (ensure_partitions makes them). Old months go whole (orders.history_months): a table
-- that is dropped fires no trigger.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON orders.audit
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON orders.audit
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON orders.sends
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON orders.sends
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only_row BEFORE UPDATE OR DELETE ON orders.sends
  FOR EACH ROW EXECUTE FUNCTION orders.append_only();

-- ---------------------------------------------------------------------------------------------- first partitions

SELECT orders.ensure_partitions(now() + interval '1 month');

-- ---------------------------------------------------------------------------------------------- grants

-- They act with the rights of their owner, so only roles that were granted them may call them.
REVOKE EXECUTE ON FUNCTION orders.ensure_partitions(timestamptz), orders.drop_old_partition(text) FROM PUBLIC;
