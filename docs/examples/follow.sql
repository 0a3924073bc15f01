-- Follows the log in plain SQL and keeps a table of the posts that are in effect.
--
--   todoke consumers add feed                                          prints the connection string URL
--   todoke psql -c 'CREATE SCHEMA feed AUTHORIZATION consumer_feed'    a place for what it makes
--   psql URL -f follow.sql                                             Ctrl-C ends it
\set ON_ERROR_STOP on
SET client_min_messages = warning;

CREATE TABLE IF NOT EXISTS feed.posts (
  topic_id text NOT NULL,
  event_id text NOT NULL,
  author text NOT NULL,
  content text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (topic_id, event_id)
);

-- What has come, in the order in which it came.
CREATE TABLE IF NOT EXISTS feed.journal (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  seq bigint NOT NULL,
  op text NOT NULL,
  event_id text NOT NULL,
  topic_id text NOT NULL
);

-- Takes everything that is new, batch by batch. Effects and offset commit together: whenever this is killed, each row of
-- the log has had its effect once or not yet.
CREATE OR REPLACE PROCEDURE feed.follow(me text, batch_max integer DEFAULT 500) LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
  condition text;
  is_paused boolean;
  taken integer;
  r record;
BEGIN
  LOOP
    -- The row is locked until COMMIT: a second instance waits here instead of doing the same work.
    SELECT o.last_seq, o.state, o.paused INTO STRICT last, condition, is_paused
    FROM cn_relay.consumer_offsets o WHERE o.consumer = me FOR UPDATE;
    EXIT WHEN is_paused;
    IF condition = 'needs_rebuild' THEN
      RAISE EXCEPTION 'rows that were not read yet have left the log: start again from cn_relay.effective_events';
    END IF;
    taken := 0;
    FOR r IN
      SELECT o.seq, o.op, o.event_id, o.topic_id, o.kind, e.pubkey, e.content, e.created_at, e.non_public
      FROM cn_relay.events_outbox o
      LEFT JOIN cn_relay.events e ON e.event_id = o.event_id AND e.ingested_at = o.ingested_at
      WHERE o.seq > last ORDER BY o.seq LIMIT batch_max
    LOOP
      INSERT INTO feed.journal (seq, op, event_id, topic_id) VALUES (r.seq, r.op, r.event_id, r.topic_id);
      IF r.op = 'delete' THEN
        DELETE FROM feed.posts p WHERE p.topic_id = r.topic_id AND p.event_id = r.event_id;
      ELSIF r.kind = 1 AND r.pubkey IS NOT NULL AND NOT r.non_public THEN  -- without pubkey: the event is purged already
        INSERT INTO feed.posts VALUES (r.topic_id, r.event_id, r.pubkey, r.content, to_timestamp(r.created_at))
        ON CONFLICT DO NOTHING;
      END IF;
      taken := taken + 1;
      last := r.seq;
    END LOOP;
    EXIT WHEN taken = 0;
    UPDATE cn_relay.consumer_offsets SET last_seq = last, updated_at = now() WHERE consumer = me;
    COMMIT;
  END LOOP;
END $$;

\o /dev/null
CALL feed.follow('feed');
\watch 1
