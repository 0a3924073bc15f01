-- The FIX adapter: who has a session and how far its numbers are, which orders went out on it, and what came back.

CREATE TABLE orders.fix_sessions (
  session text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C",
  epoch bigint NOT NULL DEFAULT 0,
  leased_until timestamptz,
  next_out bigint NOT NULL DEFAULT 1,
  next_in bigint NOT NULL DEFAULT 1,
  updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);
COMMENT ON COLUMN orders.fix_sessions.session IS 'SenderCompID->TargetCompID';
COMMENT ON COLUMN orders.fix_sessions.owner IS 'The worker that has the connection; NULL: it was given up in good order.';
COMMENT ON COLUMN orders.fix_sessions.epoch IS 'Counts owners and never goes back: who shows an older one writes nothing.';
COMMENT ON COLUMN orders.fix_sessions.next_out IS
  'At least the number of the next message out. It runs ahead while somebody has the session: a gap is filled when asked for.';
COMMENT ON COLUMN orders.fix_sessions.next_in IS
  'At most the number of the next message in: every report before it is in fix_reports. Later ones are asked for again.';

-- Written before an order leaves, so that whatever comes back finds its order.
CREATE TABLE orders.fix_orders (
  session text COLLATE "C" NOT NULL,
  cl_ord_id text COLLATE "C" NOT NULL,
  outbox_id bigint NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  reports_stored bigint NOT NULL DEFAULT 0,
  reports_applied bigint NOT NULL DEFAULT 0,
  touched_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (session, cl_ord_id)
) WITH (fillfactor = 80);
COMMENT ON COLUMN orders.fix_orders.reports_applied IS
  'How many of its reports the ledger is known to show. Fewer than stored: somebody has to look.';
CREATE INDEX fix_orders_unapplied ON orders.fix_orders (session, cl_ord_id) WHERE reports_stored > reports_applied;
CREATE INDEX fix_orders_touched ON orders.fix_orders (touched_at);

-- ExecutionReports, each once. Amounts as the broker wrote them.
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
CREATE INDEX fix_reports_received ON orders.fix_reports (received_at);
