// What the test puts into the database of a run: a history of every change of a row, made by triggers in the
// transaction that makes the change, and gates. A gate is a place in the program's statements where it waits
// as long as the test holds an advisory lock.
#pragma once

namespace todoke::test {

// The numbers of the kill list; the lock of a gate is kGateBase and its number.
inline constexpr int kGateBase = 7'000;
enum Gate : int {
  kBeforeAccept = 1,    // before the first row of an order
  kBetweenInserts = 2,  // the outbox row is written, the ledger row is not
  kAcceptCommit = 3,    // both are written; in COMMIT
  kSettle = 8,          // a worker settles: before the ledger is written
  kSettleCommit = 9,    // both are written; in COMMIT
  kTakeOver = 10,       // a lapsed row was found and is about to be taken
  kArchive = 11,        // a finished row is about to go to the archive
  kPurge = 12,          // a ledger row is about to go
  kLetGo = 13,          // a worker renews, settles or gives back: before it has looked at its rows
};

inline constexpr const char* kWatch = R"(
SET client_min_messages = warning;
CREATE SCHEMA soak;
CREATE TABLE soak.history (
  n bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), xid bigint NOT NULL DEFAULT txid_current(),
  what text NOT NULL, id bigint, key text NOT NULL, old_status text, new_status text, old_claim bigint, new_claim bigint,
  old_attempts integer, attempts integer, old_worker text, new_worker text, next_run_at timestamptz, error_msg text,
  in_doubt boolean, session text NOT NULL DEFAULT current_setting('application_name'));
CREATE INDEX ON soak.history (what, key, n);

CREATE FUNCTION soak.note_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.status, OLD.claim_no, OLD.attempts, coalesce(OLD.locked_by, ''))
      = (NEW.status, NEW.claim_no, NEW.attempts, coalesce(NEW.locked_by, '')) THEN RETURN NULL; END IF;
  INSERT INTO soak.history (what, id, key, old_status, new_status, old_claim, new_claim, old_attempts, attempts, old_worker,
    new_worker, next_run_at, error_msg, in_doubt)
  VALUES ('outbox', coalesce(NEW.id, OLD.id), coalesce(NEW.idempotency_key, OLD.idempotency_key), OLD.status, NEW.status,
    OLD.claim_no, NEW.claim_no, OLD.attempts, NEW.attempts, OLD.locked_by, NEW.locked_by, NEW.next_run_at,
    NEW.last_error_msg, NEW.in_doubt);
  RETURN NULL;
END $$;
CREATE TRIGGER zz_note AFTER INSERT OR UPDATE OR DELETE ON orders.outbox_orders FOR EACH ROW
  EXECUTE FUNCTION soak.note_outbox();

CREATE FUNCTION soak.note_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.status, OLD.request_digest) = (NEW.status, NEW.request_digest) THEN RETURN NULL; END IF;
  INSERT INTO soak.history (what, key, old_status, new_status)
  VALUES ('ledger', coalesce(NEW.idempotency_key, OLD.idempotency_key), OLD.status, NEW.status);
  RETURN NULL;
END $$;
CREATE TRIGGER zz_note AFTER INSERT OR UPDATE OR DELETE ON orders.idempo_ledger FOR EACH ROW
  EXECUTE FUNCTION soak.note_ledger();

CREATE FUNCTION soak.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7000 + TG_ARGV[0]::bigint);
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER gate_1 BEFORE INSERT ON orders.outbox_orders FOR EACH ROW EXECUTE FUNCTION soak.gate(1);
CREATE TRIGGER gate_2 BEFORE INSERT ON orders.idempo_ledger FOR EACH ROW EXECUTE FUNCTION soak.gate(2);
CREATE CONSTRAINT TRIGGER gate_3 AFTER INSERT ON orders.idempo_ledger DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION soak.gate(3);
CREATE TRIGGER gate_8 BEFORE UPDATE ON orders.idempo_ledger FOR EACH ROW
  WHEN (NEW.status <> OLD.status AND NEW.status <> 'accepted') EXECUTE FUNCTION soak.gate(8);
CREATE CONSTRAINT TRIGGER gate_9 AFTER UPDATE ON orders.idempo_ledger DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.status <> OLD.status AND NEW.status <> 'accepted') EXECUTE FUNCTION soak.gate(9);
CREATE TRIGGER gate_10 BEFORE UPDATE ON orders.outbox_orders FOR EACH ROW
  WHEN (OLD.status = 'sending' AND NEW.status = 'sending' AND NEW.claim_no <> OLD.claim_no)
  EXECUTE FUNCTION soak.gate(10);
CREATE FUNCTION soak.gate_of_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_query() LIKE '%held AS MATERIALIZED%' THEN PERFORM pg_advisory_xact_lock_shared(7013); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER gate_13 BEFORE UPDATE ON orders.outbox_orders FOR EACH STATEMENT EXECUTE FUNCTION soak.gate_of_held();
CREATE TRIGGER gate_11 BEFORE DELETE ON orders.outbox_orders FOR EACH ROW EXECUTE FUNCTION soak.gate(11);
CREATE TRIGGER gate_12 BEFORE DELETE ON orders.idempo_ledger FOR EACH ROW EXECUTE FUNCTION soak.gate(12);

-- As long as there is a row here no table of the program can grow: what it hears is what it would hear from a full disk.
CREATE TABLE soak.full_disk (is_full boolean PRIMARY KEY);
CREATE SEQUENCE soak.refusals;  -- counts what is rolled back
CREATE FUNCTION soak.grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM soak.full_disk) THEN
    PERFORM nextval('soak.refusals');
    RAISE EXCEPTION 'could not extend file "%": No space left on device', TG_TABLE_NAME USING ERRCODE = 'disk_full';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER grow BEFORE INSERT ON orders.outbox_orders FOR EACH ROW EXECUTE FUNCTION soak.grow();
CREATE TRIGGER grow BEFORE INSERT ON orders.sends FOR EACH ROW EXECUTE FUNCTION soak.grow();
CREATE TRIGGER grow BEFORE INSERT ON orders.outbox_orders_archive FOR EACH ROW EXECUTE FUNCTION soak.grow();

-- What the test knows from outside: the broker's book, the answers to posts, which worker has which sessions, keys that
-- were made old.
CREATE TABLE soak.book (key text PRIMARY KEY, copies integer NOT NULL, marked integer NOT NULL, unmarked integer NOT NULL,
  unknown integer NOT NULL, verdict text, qty numeric, at timestamptz);
CREATE TABLE soak.workers (session text NOT NULL, worker text NOT NULL, clock_jumps boolean NOT NULL);
CREATE TABLE soak.posts (key text NOT NULL, qty numeric NOT NULL, status integer NOT NULL, at timestamptz NOT NULL);
CREATE TABLE soak.aged (key text PRIMARY KEY);
CREATE VIEW soak.orders AS
  SELECT 'outbox' AS place, id, idempotency_key AS key, (order_request_json ->> 'qty')::numeric AS qty, status, attempts,
    claim_no, in_doubt, last_error_code, updated_at FROM orders.outbox_orders
  UNION ALL
  SELECT 'archive', id, idempotency_key, (order_request_json ->> 'qty')::numeric, status, attempts, claim_no, in_doubt,
    last_error_code, updated_at FROM orders.outbox_orders_archive;
)";

}  // namespace todoke::test
