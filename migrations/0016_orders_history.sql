-- Results and executions outlive the tables that work with them: they go to the archive, a partition for each month.

-- What the ledger said of the order when its row went.
ALTER TABLE orders.outbox_orders_archive
  ADD COLUMN http_status integer,
  ADD COLUMN result_digest text COLLATE "C",
  ADD COLUMN response_payload_json json;
COMMENT ON COLUMN orders.outbox_orders_archive.response_payload_json IS
  'NULL: the ledger still has the result, or it had forgotten it before this column was there.';

-- ExecutionReports of orders that are over, and of those whose ClOrdID went to a later order.
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
COMMENT ON COLUMN orders.fix_reports_archive.outbox_id IS 'NULL: of an order that did not go out from here.';
CREATE INDEX fix_reports_archive_outbox ON orders.fix_reports_archive (outbox_id);

ALTER TABLE orders.sends ADD COLUMN note text;
COMMENT ON COLUMN orders.sends.note IS
  'What could not be read of the answer of a broker that took the order, by name and without content.';

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
SELECT orders.ensure_partitions(now() + interval '1 month');

-- The broker may still fill it.
CREATE FUNCTION orders.is_working(l orders.idempo_ledger) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN l.status = 'succeeded' AND coalesce((l.response_payload_json -> 'warnings')::jsonb ? 'WORKING', false);
COMMENT ON COLUMN orders.idempo_ledger.expires_at IS
  'When a settled row may go; it never goes before its outbox row, nor while the broker works on the order. Set when it is settled.';
