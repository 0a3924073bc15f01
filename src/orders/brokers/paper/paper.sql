-- The book of the paper broker.

-- Executes an order, unless it is in the book: then it is only counted.
-- name: paper_execute
INSERT INTO orders.paper_book AS b (broker_id, outbox_id, order_ref, outcome, px, qty) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (broker_id, outbox_id) DO UPDATE SET copies = b.copies + 1
RETURNING (b.copies = 1) AS is_new, b.order_ref, b.outcome, b.px, b.qty, b.executed_at;

-- name: paper_find
SELECT order_ref, outcome, px, qty, executed_at FROM orders.paper_book WHERE broker_id = $1 AND outbox_id = $2;
