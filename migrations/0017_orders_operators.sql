-- What operators look for, and what workers tell them.

-- Each worker has a breaker of its own, in its memory.
ALTER TABLE orders.workers ADD COLUMN breaker text COLLATE "C" NOT NULL DEFAULT 'closed'
  CHECK (breaker IN ('closed', 'ramping', 'probing', 'open'));

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
