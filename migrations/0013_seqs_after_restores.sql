-- Seqs after a restore: a database that was restored, copied or promoted is noticed by whoever appends next, and the log goes on
-- with seqs that nobody has given out before (docs/decisions/0010). Backlogs in rows. A pause that holds consumers from outside.

-- ---------------------------------------------------------------------------------------------- the place of the log

-- Every seq is below 2^53, so that a JSON number holds it.
ALTER SEQUENCE cn_relay.events_outbox_seq MAXVALUE 9007199254740991;

DROP FUNCTION cn_relay.check_log_identity();
DROP FUNCTION cn_relay.lock_log();

ALTER TABLE cn_relay.log_identity
  ADD COLUMN database oid,
  ADD COLUMN written_by xid,
  ADD COLUMN since_seq bigint NOT NULL DEFAULT 0;
COMMENT ON TABLE cn_relay.log_identity IS 'The place in which the log was written last.';
COMMENT ON COLUMN cn_relay.log_identity.written_by IS
  'xmin of this row. A dump holds this value, but the row that is made of it gets another xmin.';
COMMENT ON COLUMN cn_relay.log_identity.since_seq IS 'In this place seqs were given out after this one.';

-- Where this database is now. The timeline comes from the WAL position: the control file shows the old one until the first
-- checkpoint after a promotion.
CREATE FUNCTION cn_relay.log_place(OUT system_identifier text, OUT timeline integer, OUT backup text, OUT database oid)
LANGUAGE plpgsql AS $$
DECLARE
  label_bytes_max constant bigint := 10000;
BEGIN
  SELECT s.system_identifier INTO system_identifier FROM pg_control_system() s;
  timeline := ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
  SELECT d.oid INTO database FROM pg_database d WHERE d.datname = current_database();
  BEGIN
    backup := pg_read_file('backup_label.old', 0, label_bytes_max, true);
  EXCEPTION WHEN insufficient_privilege THEN
    -- The user of a configured database need not be allowed to.
  END;
END $$;

-- Notes this place. The second statement reads the xmin that the first has given to the row: in a subtransaction that is not
-- the id of the transaction.
CREATE FUNCTION cn_relay.note_log_place(since bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO cn_relay.log_identity AS i (system_identifier, timeline, backup, database, since_seq)
    SELECT p.system_identifier, p.timeline, p.backup, p.database, since FROM cn_relay.log_place() p
    ON CONFLICT (only_one) DO UPDATE SET system_identifier = excluded.system_identifier, timeline = excluded.timeline,
      backup = excluded.backup, database = excluded.database, since_seq = excluded.since_seq;
  UPDATE cn_relay.log_identity SET written_by = xmin;
  PERFORM set_config('todoke.log_since', since::text, false);
END $$;

-- As before, with names for partitions beyond 999,999.
CREATE OR REPLACE FUNCTION cn_relay.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  made integer := 0;
  month timestamp;
  parent text;
  width constant bigint := 1000000;
  first bigint;
  head bigint;
  child text;
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215462);
  FOR month IN
    SELECT generate_series(date_trunc('month', now() AT TIME ZONE 'UTC'),
                           date_trunc('month', until AT TIME ZONE 'UTC'), interval '1 month')
  LOOP
    FOREACH parent IN ARRAY ARRAY['events', 'event_topics', 'event_tags'] LOOP
      made := made + cn_relay.add_partition(
        parent || '_regular', format('%s_%s', parent, to_char(month, 'YYYY_MM')),
        to_char(month, 'YYYY-MM-DD') || ' 00:00:00+00',
        to_char(month + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00')::integer;
    END LOOP;
  END LOOP;
  SELECT last_value INTO head FROM cn_relay.events_outbox_seq;
  FOR i IN 0..1 LOOP
    first := (head / width + i) * width;
    child := (first / width)::text;
    child := 'events_outbox_' || lpad(child, greatest(6, length(child)), '0');
    IF cn_relay.add_partition(
         'events_outbox', child, first::text, (first + width)::text,
         'CREATE TRIGGER commit_order BEFORE INSERT ON cn_relay.%I '
         'FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.lock_log_trigger()') THEN
      INSERT INTO cn_relay.log_partitions (first_seq, end_seq, table_name)
        VALUES (first, first + width, 'cn_relay.' || child)
        ON CONFLICT (first_seq) DO UPDATE SET first_at = NULL, last_at = NULL;
      made := made + 1;
    END IF;
  END LOOP;
  RETURN made;
END $$;

-- Lets the log go on with seqs that nobody has given out, and says after which. `seen`: a seq that the caller knows of.
--
-- The clock's microseconds since 1970: no log has ever given out as many seqs as microseconds have passed. A clock that is behind
-- what was given out already, or beyond the year 2112, is not believed: then a day's worth of microseconds and the time of day are
-- added, so that two restores of one backup differ.
CREATE FUNCTION cn_relay.move_log(seen bigint DEFAULT 0) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  clock_max constant bigint := 4503599627370496;  -- 2^52
  day constant bigint := 86400000000;
  clock constant bigint := greatest(floor(extract(epoch FROM clock_timestamp()) * 1000000), 0);
  given_out bigint;
  since bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215461);
  SELECT greatest(s.last_value, seen) INTO given_out FROM cn_relay.events_outbox_seq s;
  since := CASE WHEN clock > given_out AND clock < clock_max THEN clock ELSE given_out + day + clock % day END;
  PERFORM setval('cn_relay.events_outbox_seq', since);
  PERFORM cn_relay.note_log_place(since);
  PERFORM cn_relay.ensure_partitions(now());
  RETURN since;
END $$;

-- Under the log's lock. Lets the log go on later if this is not the place in which it was written last, or if its head is behind
-- what the caller has seen; where `may_move` is false that is refused.
CREATE FUNCTION cn_relay.check_log(seen bigint, may_move boolean, OUT head bigint, OUT since bigint, OUT moved boolean)
LANGUAGE plpgsql AS $$
DECLARE
  is_ours boolean;
BEGIN
  moved := false;
  SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END INTO head FROM cn_relay.events_outbox_seq s;
  SELECT i.since_seq, coalesce(i.xmin = i.written_by, false) INTO since, is_ours FROM cn_relay.log_identity i;
  IF is_ours IS NULL AND head >= seen THEN
    since := 0;
    -- Not by a trigger: it may be a dump that is being read in, whose own row is still to come.
    IF may_move THEN
      PERFORM cn_relay.note_log_place(since);
    END IF;
    RETURN;
  END IF;
  IF is_ours AND head >= seen AND EXISTS (
       SELECT FROM cn_relay.log_identity i, cn_relay.log_place() p
       WHERE i.system_identifier = p.system_identifier AND i.timeline = p.timeline AND i.database = p.database
         AND (p.backup IS NULL OR p.backup IS NOT DISTINCT FROM i.backup)) THEN
    PERFORM set_config('todoke.log_since', since::text, false);
    RETURN;
  END IF;
  IF NOT may_move THEN
    RAISE EXCEPTION 'the database was restored or promoted: the log must go on with later seqs first'
      USING ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'SELECT cn_relay.lock_log() as the first statement of the transaction does that; so does the start of a relay.';
  END IF;
  since := cn_relay.move_log(seen);
  head := since;
  moved := true;
END $$;

-- The lock of the log, held until the transaction ends. A session that then falls silent is cut after 5 s, so that it can't stop
-- everybody else. `head` is the last seq that was given out before, `since` says when the log has moved to another place, `moved`
-- that it was this call which noticed. `seen`: a seq that the caller knows of.
--
-- Only the first call of a session looks at the place itself, which can't change while the session lives; a dump that is restored
-- under it shows in the row. For the others that is 5 µs on top of 10.
CREATE FUNCTION cn_relay.lock_log(seen bigint DEFAULT 0, OUT waited double precision, OUT head bigint, OUT since bigint,
                                  OUT moved boolean) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215461);
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  waited := extract(epoch FROM clock_timestamp() - statement_timestamp());
  moved := false;
  SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END, i.since_seq INTO head, since
    FROM cn_relay.events_outbox_seq s LEFT JOIN cn_relay.log_identity i ON i.xmin = i.written_by;
  IF head < seen OR since IS NULL OR current_setting('todoke.log_since', true) IS DISTINCT FROM since::text THEN
    SELECT c.head, c.since, c.moved INTO head, since, moved FROM cn_relay.check_log(seen, true) c;
  END IF;
END $$;

-- For writers that do not know of the lock. A partition can't be made while an INSERT is under way: the trigger refuses where the
-- log has to go on later.
CREATE OR REPLACE FUNCTION cn_relay.lock_log_trigger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215461);
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  IF NOT EXISTS (SELECT FROM cn_relay.log_identity i
                 WHERE i.xmin = i.written_by AND i.since_seq::text = current_setting('todoke.log_since', true)) THEN
    PERFORM cn_relay.check_log(0, false);
  END IF;
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- backlogs

-- How far every consumer is behind: rows that it has not taken, the age of the first of them, and the log's head.
--
-- Gaps don't count. Of the newest 10,000 rows that is exact. Before them the rows of a partition are taken for as many as there are
-- seqs between its first and its last row; so gaps between partitions, as a restore makes them, don't count there either. Reads
-- what the slowest has not taken of those 10,000 rows, once for all (8 ms), and the edges of the partitions if one is further behind.
CREATE FUNCTION cn_relay.backlogs()
RETURNS TABLE (consumer text, rows bigint, seconds double precision, head bigint) LANGUAGE sql STABLE AS $$
  WITH newest AS MATERIALIZED (
    SELECT coalesce(array_agg(n.seq ORDER BY n.seq), '{}') AS seqs
    FROM (SELECT o.seq FROM cn_relay.events_outbox o
          WHERE o.seq > (SELECT min(c.last_seq) FROM cn_relay.consumer_offsets c) ORDER BY o.seq DESC LIMIT 10000) n
  ), edges AS MATERIALIZED (
    SELECT e.first, e.last
    FROM cn_relay.log_partitions p CROSS JOIN LATERAL (
      SELECT min(o.seq) AS first, max(o.seq) AS last FROM cn_relay.events_outbox o
      WHERE o.seq >= p.first_seq AND o.seq < p.end_seq) e
    WHERE e.last IS NOT NULL
  )
  SELECT c.consumer,
    cardinality(n.seqs) - width_bucket(c.last_seq, n.seqs) + CASE WHEN c.last_seq < n.seqs[1] - 1 THEN (
      SELECT coalesce(sum(greatest(least(e.last, n.seqs[1] - 1) - greatest(c.last_seq, e.first - 1), 0)), 0)::bigint
      FROM edges e) ELSE 0 END,
    coalesce(extract(epoch FROM clock_timestamp() - (
      SELECT o.appended_at FROM cn_relay.events_outbox o WHERE o.seq > c.last_seq ORDER BY o.seq LIMIT 1)), 0)
      ::double precision,
    (SELECT coalesce(max(o.seq), 0) FROM cn_relay.events_outbox o)
  FROM cn_relay.consumer_offsets c, newest n
$$;

-- ---------------------------------------------------------------------------------------------- pauses

-- What a paused consumer from outside does elsewhere nobody can hold; its offset stays.
CREATE FUNCTION cn_relay.offset_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_user = 'consumer_' || OLD.consumer THEN
    RAISE EXCEPTION 'the operator has paused the consumer %', OLD.consumer
      USING ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'Wait until paused is false; the operator runs: todoke consumers resume ' || OLD.consumer;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER held BEFORE UPDATE OF last_seq ON cn_relay.consumer_offsets FOR EACH ROW
  WHEN (OLD.paused AND NEW.last_seq <> OLD.last_seq) EXECUTE FUNCTION cn_relay.offset_held();

REVOKE EXECUTE ON FUNCTION cn_relay.log_place(), cn_relay.note_log_place(bigint), cn_relay.move_log(bigint),
  cn_relay.check_log(bigint, boolean), cn_relay.lock_log(bigint), cn_relay.lock_log_trigger(), cn_relay.backlogs(),
  cn_relay.offset_held() FROM PUBLIC;
