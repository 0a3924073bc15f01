-- The kill switch.

-- name: read_halts
SELECT adapter, instrument, intake_refused FROM orders.halts LIMIT $1;
