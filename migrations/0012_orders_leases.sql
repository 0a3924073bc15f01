-- What a worker's lease is: others may have another one (outbox.lock_lease_sec changes while they run).
ALTER TABLE orders.workers ADD COLUMN lease_sec double precision NOT NULL DEFAULT 0;
COMMENT ON COLUMN orders.workers.lease_sec IS
  'Its outbox.lock_lease_sec. While it shows signs of life its orders are not taken over before, whoever asks.';
