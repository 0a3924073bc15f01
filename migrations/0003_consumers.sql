-- The reading side of the log: who follows it, how far, and what went wrong.

-- Every column beyond the first three has a default: a consumer that knows only these works.
ALTER TABLE cn_relay.consumer_offsets
  ADD COLUMN epoch bigint NOT NULL DEFAULT 0,
  ADD COLUMN owner text,
  ADD COLUMN lease_until timestamptz,
  ADD COLUMN mandatory boolean NOT NULL DEFAULT false,
  ADD COLUMN paused boolean NOT NULL DEFAULT false,
  ADD COLUMN state text COLLATE "C" NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'rebuilding', 'needs_rebuild')),
  ADD COLUMN rebuild_done bigint NOT NULL DEFAULT 0,
  ADD COLUMN rebuild_total bigint NOT NULL DEFAULT 0,
  ADD COLUMN rebuild_since timestamptz,
  ADD COLUMN purged_rows bigint NOT NULL DEFAULT 0,
  ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN cn_relay.consumer_offsets.epoch IS
  'Grows with every change of hands: an instance of an older epoch can not commit.';
COMMENT ON COLUMN cn_relay.consumer_offsets.mandatory IS 'Holds retention of the log back, up to log.retention_max.';
COMMENT ON COLUMN cn_relay.consumer_offsets.purged_rows IS
  'Rows that were passed over because their event had been purged already.';

-- Effects that must not be repeated: once for an event (topic_id and op empty), or once for a row of the log.
CREATE TABLE cn_relay.consumer_effects (
  consumer text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  topic_id text COLLATE "C" NOT NULL DEFAULT '',
  op text COLLATE "C" NOT NULL DEFAULT '',
  seq bigint NOT NULL,
  PRIMARY KEY (consumer, event_id, topic_id, op)
);
CREATE INDEX consumer_effects_seq ON cn_relay.consumer_effects (consumer, seq);

CREATE TABLE cn_relay.consumer_dead_letters (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  op text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  topic_id text COLLATE "C" NOT NULL,
  error text NOT NULL,
  tries integer NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT now(),
  retry boolean NOT NULL DEFAULT false,
  UNIQUE (consumer, seq)
);
COMMENT ON COLUMN cn_relay.consumer_dead_letters.retry IS 'Somebody asked for another try.';
CREATE INDEX consumer_dead_letters_retry ON cn_relay.consumer_dead_letters (consumer) WHERE retry;

-- What a consumer says that it has taken, for `todoke audit`: how many rows of (from_seq, to_seq], and the
-- exclusive or of their hashes.
CREATE TABLE cn_relay.consumer_ranges (
  consumer text COLLATE "C" NOT NULL,
  from_seq bigint NOT NULL,
  to_seq bigint NOT NULL,
  row_count bigint NOT NULL,
  row_hash bigint NOT NULL,
  PRIMARY KEY (consumer, from_seq)
);

-- An offset that goes back is a replay, whoever moved it: what the rows after it have done may be done again, and
-- what was said of them is said anew. A range that the new offset cuts is marked (row_count -1): its first part was
-- taken, but how much of it is no longer known.
CREATE FUNCTION cn_relay.offset_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.last_seq < OLD.last_seq THEN
    DELETE FROM cn_relay.consumer_effects WHERE consumer = NEW.consumer AND seq > NEW.last_seq;
    DELETE FROM cn_relay.consumer_ranges WHERE consumer = NEW.consumer AND from_seq >= NEW.last_seq;
    UPDATE cn_relay.consumer_ranges SET to_seq = NEW.last_seq, row_count = -1, row_hash = 0
      WHERE consumer = NEW.consumer AND to_seq > NEW.last_seq;
    DELETE FROM cn_relay.consumer_dead_letters WHERE consumer = NEW.consumer AND seq > NEW.last_seq;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER replays AFTER UPDATE OF last_seq ON cn_relay.consumer_offsets
  FOR EACH ROW WHEN (NEW.last_seq < OLD.last_seq) EXECUTE FUNCTION cn_relay.offset_moved();

-- How far retention has emptied the log: rows up to here are gone, and nobody can replay them.
CREATE TABLE cn_relay.log_floor (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  dropped_until bigint NOT NULL DEFAULT 0
);
INSERT INTO cn_relay.log_floor DEFAULT VALUES;
