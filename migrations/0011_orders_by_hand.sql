-- Changes by hand: all of them are in the audit, and none of them leaves an order where no worker looks for it.
--
-- As before, rows of the program pay for the conditions of triggers only, never for a function: WHEN looks at the session's
-- orders.actor. 5,000 orders were put into outbox and ledger in 187 ms with the new triggers and without them (median of 60
-- each, on a busy machine).

-- What stands under NULL here is looked at by nobody: workers turn rows into pending ones by their time.
CREATE FUNCTION orders.due_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.next_run_at := now();
  RETURN NEW;
END $$;
CREATE TRIGGER due_at_once BEFORE INSERT OR UPDATE OF status, next_run_at ON orders.outbox_orders FOR EACH ROW
  WHEN (NEW.status = 'failed' AND NEW.next_run_at IS NULL) EXECUTE FUNCTION orders.due_at_once();

SELECT set_config('orders.actor', 'migration', true);
UPDATE orders.outbox_orders SET next_run_at = now() WHERE status = 'failed' AND next_run_at IS NULL;

-- A row taken from its worker by hand may have been sent, by that worker's adapter and no other.
CREATE OR REPLACE FUNCTION orders.changing_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'sending' AND NEW.status IN ('pending', 'failed', 'aborted') THEN
    NEW.in_doubt := true;
    NEW.adapter := coalesce(NEW.adapter, (SELECT w.adapter FROM orders.workers w WHERE w.worker = OLD.locked_by));
  END IF;
  RETURN NEW;
END $$;
COMMENT ON COLUMN orders.outbox_orders.adapter IS
  'NULL: the adapter of the worker (broker.adapter). Of an order in doubt: the one that has tried it.';

-- What the audit keeps of a row: no content, but by its hash whether it was changed.
CREATE FUNCTION orders.content_hash(content text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(encode(sha256(convert_to(content, 'UTF8')), 'hex'), 32);
CREATE OR REPLACE FUNCTION orders.audited(o orders.outbox_orders) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', o.status, 'attempts', o.attempts, 'claim_no', o.claim_no, 'in_doubt', o.in_doubt,
  'last_error_code', o.last_error_code, 'next_run_at', o.next_run_at, 'locked_by', o.locked_by,
  'request_digest', o.request_digest, 'order_hash', orders.content_hash(o.order_request_json::text));
CREATE OR REPLACE FUNCTION orders.audited(l orders.idempo_ledger) RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('status', l.status, 'http_status', l.http_status, 'request_digest', l.request_digest,
  'result_digest', l.result_digest, 'expires_at', l.expires_at,
  'result_hash', orders.content_hash(l.response_payload_json::text));

-- For the outbox and the ledger.
CREATE OR REPLACE FUNCTION orders.changed_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
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
    PERFORM pg_notify('orders_pending', '');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER inserted_by_hand AFTER INSERT ON orders.outbox_orders FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
CREATE TRIGGER inserted_by_hand AFTER INSERT ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();
-- Whatever column it is.
DROP TRIGGER changed_by_hand ON orders.idempo_ledger;
CREATE TRIGGER changed_by_hand AFTER UPDATE ON orders.idempo_ledger FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.changed_by_hand();

-- The kill switch holds no content: its rows are kept whole.
CREATE FUNCTION orders.halt_changed_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO orders.audit (actor, action, before, after)
  VALUES (format('sql:%s', session_user), format('%s %s', lower(TG_OP), TG_TABLE_NAME),
    CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END);
  RETURN NULL;
END $$;
CREATE TRIGGER changed_by_hand AFTER INSERT OR UPDATE OR DELETE ON orders.halts FOR EACH ROW
  WHEN (coalesce(current_setting('orders.actor', true), '') = '') EXECUTE FUNCTION orders.halt_changed_by_hand();

-- Nothing of the program truncates: one row says that everything went.
CREATE FUNCTION orders.truncated_by_hand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO orders.audit (actor, action)
  VALUES (format('sql:%s', session_user), format('truncate %s', TG_TABLE_NAME));
  RETURN NULL;
END $$;
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.outbox_orders
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.idempo_ledger
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();
CREATE TRIGGER truncated_by_hand AFTER TRUNCATE ON orders.halts
  FOR EACH STATEMENT EXECUTE FUNCTION orders.truncated_by_hand();
CREATE TRIGGER tell_halts_truncated AFTER TRUNCATE ON orders.halts
  FOR EACH STATEMENT EXECUTE FUNCTION orders.tell_halts();

-- Audit and journal are append-only, each partition of the journal, too. Old months go whole (orders.history_months): a
-- table that is dropped fires no trigger.
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON orders.audit
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON orders.sends
  FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only();
-- A trigger for each row is passed on to every partition, those of a statement are not.
CREATE TRIGGER append_only_row BEFORE UPDATE OR DELETE ON orders.sends
  FOR EACH ROW EXECUTE FUNCTION orders.append_only();
DO $$
DECLARE
  month regclass;
BEGIN
  FOR month IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'orders.sends'::regclass LOOP
    EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON %s'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION orders.append_only()', month);
  END LOOP;
END $$;

-- Makes the monthly partitions from now to `until`. The number made.
CREATE OR REPLACE FUNCTION orders.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
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

-- A key that comes again, after its first order is forgotten, is another order at the paper broker, too. What is in the book
-- already belongs to the newest order of its key; 0: to one that is known nowhere any more.
ALTER TABLE orders.paper_book ADD COLUMN outbox_id bigint NOT NULL DEFAULT 0;
UPDATE orders.paper_book b SET outbox_id = coalesce(
  (SELECT o.id FROM orders.outbox_orders o WHERE o.idempotency_key = b.broker_id),
  (SELECT max(a.id) FROM orders.outbox_orders_archive a WHERE a.idempotency_key = b.broker_id), 0);
ALTER TABLE orders.paper_book ALTER COLUMN outbox_id DROP DEFAULT, DROP CONSTRAINT paper_book_pkey,
  ADD PRIMARY KEY (broker_id, outbox_id);
COMMENT ON COLUMN orders.paper_book.outbox_id IS 'Tells apart orders that had the same key one after the other.';

COMMENT ON COLUMN orders.outbox_orders.expires_at IS
  'Of the worker protocol, for those who enqueue by hand. Nothing reads it: how long a finished row stays follows from its status and updated_at. It goes to the archive with the row.';
COMMENT ON COLUMN orders.sends.outcome IS
  'ok, the reason_code of a failure, FOUND for a look-up that settled the order, or LEASE_EXPIRED for a try whose worker vanished.';
DROP FUNCTION orders.is_by_hand();
