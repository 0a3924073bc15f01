// What is in the tables when a run begins: orders of earlier days that retention looks at, and orders whose
// ledger knows more than they do. For each what may become of it.
#pragma once

namespace todoke::test {

inline constexpr const char* kLeftOver = R"(
CREATE TABLE IF NOT EXISTS soak.left_over (
  key text PRIMARY KEY, status text NOT NULL, created interval NOT NULL, changed interval NOT NULL, ledger text,
  is_same boolean NOT NULL DEFAULT true,       -- the ledger knows this content
  end_status text,                             -- NULL: as the broker decides
  stays boolean NOT NULL DEFAULT true,         -- in the outbox
  ledger_stays boolean NOT NULL DEFAULT true,
  is_sent boolean NOT NULL DEFAULT false);

BEGIN;
SET LOCAL session_replication_role = replica;  -- nothing of this is history
TRUNCATE soak.left_over;
INSERT INTO soak.left_over (key, status, created, changed, ledger, end_status, stays, ledger_stays) VALUES
  ('left-over-23h', 'succeeded', '23 h', '23 h', 'succeeded', 'succeeded', true, true),
  ('left-over-25h', 'succeeded', '3 d', '25 h', 'succeeded', 'succeeded', false, true),
  ('left-over-3d', 'succeeded', '3 d', '3 d', 'succeeded', 'succeeded', false, false),
  ('left-over-aborted', 'aborted', '3 d', '3 d', 'failed', 'aborted', true, true),
  ('left-over-8d', 'aborted', '8 d', '8 d', 'failed', 'aborted', false, false),
  ('left-over-done', 'pending', '1 h', '1 h', 'succeeded', 'succeeded', true, true),
  ('left-over-done-sending', 'sending', '1 h', '1 h', 'succeeded', 'succeeded', true, true),
  ('left-over-failed-sending', 'sending', '1 h', '1 h', 'failed', 'aborted', true, true);
INSERT INTO soak.left_over (key, status, created, changed, ledger, is_same, end_status)
  VALUES ('left-over-conflict', 'pending', '1 h', '1 h', 'succeeded', false, 'aborted');
INSERT INTO soak.left_over (key, status, created, changed, ledger_stays, is_sent)
  VALUES ('left-over-alone', 'pending', '1 h', '1 h', false, true);

INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest, status, created_at, updated_at,
  locked_by, locked_at)
SELECT key, jsonb_build_object('instrument', 'BTC-USD', 'side', 'BUY', 'qty', 1, 'price', 10.5, 'idempotency_key', key),
  md5(key), status, now() - created, now() - changed, CASE status WHEN 'sending' THEN 'gone:1:x' END,
  CASE status WHEN 'sending' THEN now() - changed END
FROM soak.left_over ORDER BY key ON CONFLICT DO NOTHING;
INSERT INTO orders.idempo_ledger (idempotency_key, request_digest, status, http_status, response_payload_json,
  first_seen_at, last_seen_at, expires_at)
SELECT key, CASE WHEN is_same THEN md5(key) ELSE 'another' END, ledger, CASE ledger WHEN 'failed' THEN 502 ELSE 200 END, '{}',
  now() - created, now() - changed, now() - changed + interval '48 h'
FROM soak.left_over WHERE ledger IS NOT NULL ON CONFLICT DO NOTHING;
COMMIT;
)";

}  // namespace todoke::test
