-- The relay's tables: what was accepted, what of it is in effect, and the log of both.
--
-- Order. Whoever appends to the log takes one lock first (lock_log), so that the order of seq is the order of
-- commits. Ids are lower-case hex; text that is compared byte by byte has COLLATE "C".
--
-- Lifetimes. `r` events (regular) are dropped by the month; `k` events (versions of replaceable and addressable
-- events, deletion requests, topics that are kept longer) stay until a row is deleted. The two never share a
-- partition, so that a drop never takes what has to stay, and a reader opens one partition more than there are
-- months.
CREATE SCHEMA cn_relay;

-- ---------------------------------------------------------------------------------------------- topics

CREATE FUNCTION cn_relay.ingest_policy_problem(policy jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  name text;
  value jsonb;
BEGIN
  IF jsonb_typeof(policy) <> 'object' THEN
    RETURN 'ingest_policy must be an object';
  END IF;
  FOR name, value IN SELECT * FROM jsonb_each(policy) LOOP
    IF name IN ('retention_days', 'max_events', 'max_bytes', 'max_delay_seconds') THEN
      IF jsonb_typeof(value) <> 'number' OR value::text !~ '^[0-9]{1,15}$' OR value::text = '0' THEN
        RETURN format('%s must be a positive integer', name);
      END IF;
    ELSIF name = 'allow_backfill' THEN
      IF jsonb_typeof(value) <> 'boolean' THEN
        RETURN 'allow_backfill must be true or false';
      END IF;
    ELSIF name = 'priority' THEN
      IF value NOT IN ('"low"', '"normal"', '"high"') THEN
        RETURN 'priority must be low, normal or high';
      END IF;
    ELSE
      RETURN format('unknown key %s', name);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

CREATE TABLE cn_relay.node_subscriptions (
  topic_id text COLLATE "C" PRIMARY KEY CHECK (octet_length(topic_id) BETWEEN 1 AND 1024),
  enabled boolean NOT NULL DEFAULT true,
  pinned boolean NOT NULL DEFAULT false,
  ref_count integer NOT NULL DEFAULT 0 CHECK (ref_count >= 0),
  ingest_policy jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  name text CHECK (octet_length(name) <= 1024)
);
COMMENT ON COLUMN cn_relay.node_subscriptions.name IS
  'The name that it was enabled by, where that is known: an id does not tell it.';
COMMENT ON COLUMN cn_relay.node_subscriptions.pinned IS
  'The operator decided: enabled does not follow ref_count.';

CREATE FUNCTION cn_relay.node_subscription_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  problem text := cn_relay.ingest_policy_problem(NEW.ingest_policy);
BEGIN
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION 'ingest_policy of %: %', NEW.topic_id, problem USING ERRCODE = 'check_violation';
  END IF;
  IF TG_OP = 'UPDATE' THEN
    NEW.updated_at := now();
    IF NOT NEW.pinned AND NEW.ref_count <> OLD.ref_count THEN
      NEW.enabled := NEW.ref_count > 0;
    END IF;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER checks BEFORE INSERT OR UPDATE ON cn_relay.node_subscriptions
  FOR EACH ROW EXECUTE FUNCTION cn_relay.node_subscription_changes();

CREATE FUNCTION cn_relay.notify_topics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('cn_relay_topics', '');
  RETURN NULL;
END $$;

CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON cn_relay.node_subscriptions
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.notify_topics();

INSERT INTO cn_relay.node_subscriptions (topic_id, enabled, pinned) VALUES ('kukuri:global', true, true);

-- ---------------------------------------------------------------------------------------------- the log

CREATE SEQUENCE cn_relay.events_outbox_seq AS bigint CACHE 1;

CREATE TABLE cn_relay.events_outbox (
  seq bigint NOT NULL DEFAULT nextval('cn_relay.events_outbox_seq') PRIMARY KEY,
  op text COLLATE "C" NOT NULL CHECK (op IN ('upsert', 'delete')),
  event_id text COLLATE "C" NOT NULL,
  topic_id text COLLATE "C" NOT NULL,
  kind integer NOT NULL,
  created_at bigint NOT NULL,
  ingested_at timestamptz NOT NULL,
  effective_key text COLLATE "C",
  reason text COLLATE "C" CHECK (reason IN ('nip09', 'expiration', 'replaced', 'operator', 'dsar')),
  appended_at timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (seq);
COMMENT ON COLUMN cn_relay.events_outbox.ingested_at IS
  'When the event was accepted, as in events: (event_id, ingested_at) finds it.';
COMMENT ON COLUMN cn_relay.events_outbox.appended_at IS 'When this row was written.';

ALTER SEQUENCE cn_relay.events_outbox_seq OWNED BY cn_relay.events_outbox.seq;

-- Which seqs a partition holds, and from when to when its rows were written: retention by time reads this.
CREATE TABLE cn_relay.log_partitions (
  first_seq bigint PRIMARY KEY,
  end_seq bigint NOT NULL,
  table_name text NOT NULL,
  first_at timestamptz,
  last_at timestamptz
);

CREATE TABLE cn_relay.consumer_offsets (
  consumer text COLLATE "C" PRIMARY KEY,
  last_seq bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- The lock of the log, held until the transaction ends. A session that then falls silent is cut after 5 s, so
-- that it can't stop everybody else. `head` is the last seq that was given out before.
CREATE FUNCTION cn_relay.lock_log(OUT waited double precision, OUT head bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215461);
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END INTO head
    FROM cn_relay.events_outbox_seq s;
  waited := extract(epoch FROM clock_timestamp() - statement_timestamp());
END $$;

-- For writers that do not know of the lock.
CREATE FUNCTION cn_relay.lock_log_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(128021775215461);
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  RETURN NULL;
END $$;

CREATE TRIGGER commit_order BEFORE INSERT ON cn_relay.events_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.lock_log_trigger();

-- The cluster that gave out the seqs so far. After a restore or a promotion the same numbers could be given out
-- a second time; so the sequence is moved on whenever this changes.
CREATE TABLE cn_relay.log_identity (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  system_identifier text NOT NULL,
  timeline integer NOT NULL
);

-- True: the sequence was moved.
CREATE FUNCTION cn_relay.check_log_identity() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_system text;
  now_timeline integer;
  known cn_relay.log_identity;
BEGIN
  PERFORM cn_relay.lock_log();
  SELECT system_identifier INTO now_system FROM pg_control_system();
  SELECT timeline_id INTO now_timeline FROM pg_control_checkpoint();
  SELECT * INTO known FROM cn_relay.log_identity;
  IF NOT FOUND THEN
    INSERT INTO cn_relay.log_identity (system_identifier, timeline) VALUES (now_system, now_timeline);
    RETURN false;
  END IF;
  IF known.system_identifier = now_system AND known.timeline = now_timeline THEN
    RETURN false;
  END IF;
  UPDATE cn_relay.log_identity SET system_identifier = now_system, timeline = now_timeline;
  PERFORM setval('cn_relay.events_outbox_seq', (SELECT last_value FROM cn_relay.events_outbox_seq) + 1000000);
  RETURN true;
END $$;

-- ---------------------------------------------------------------------------------------------- events

CREATE TABLE cn_relay.event_dedupe (
  event_id text COLLATE "C" PRIMARY KEY,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  seen_count bigint NOT NULL DEFAULT 1
);

CREATE TABLE cn_relay.events (
  event_id text COLLATE "C" NOT NULL,
  pubkey text COLLATE "C" NOT NULL,
  kind integer NOT NULL,
  created_at bigint NOT NULL,
  tags json NOT NULL,
  content text NOT NULL,
  sig text COLLATE "C" NOT NULL,
  ingested_at timestamptz NOT NULL DEFAULT now(),
  ingested_seq bigint NOT NULL,
  source text COLLATE "C" NOT NULL CHECK (source IN ('ws', 'api', 'gossip', 'backfill', 'import', 'node')),
  expires_at timestamptz,
  deleted_at timestamptz,
  superseded_at timestamptz,
  expired_at timestamptz,
  non_public boolean NOT NULL DEFAULT false,
  lifetime "char" NOT NULL DEFAULT 'r',
  effective_key text COLLATE "C",
  topics text[] COLLATE "C" NOT NULL,
  raw bytea
) PARTITION BY LIST (lifetime);
COMMENT ON COLUMN cn_relay.events.ingested_seq IS 'The seq of the first row of the log that names the event.';
COMMENT ON COLUMN cn_relay.events.topics IS 'The topics that the event was accepted for.';
COMMENT ON COLUMN cn_relay.events.expired_at IS 'When the log was told that the event has expired.';
COMMENT ON COLUMN cn_relay.events.raw IS
  'The event as JSON, where its text holds U+0000: content has U+FFFD in its place then, and SQL can not read the tags.';

CREATE TABLE cn_relay.events_kept PARTITION OF cn_relay.events FOR VALUES IN ('k');
CREATE TABLE cn_relay.events_regular PARTITION OF cn_relay.events FOR VALUES IN ('r')
  PARTITION BY RANGE (ingested_at);
CREATE INDEX events_id ON cn_relay.events (event_id);
CREATE INDEX events_expiry ON cn_relay.events (expires_at)
  WHERE expires_at IS NOT NULL AND expired_at IS NULL AND deleted_at IS NULL AND superseded_at IS NULL;

-- Links of the events that are in effect: a query for a topic needs no join before its limit.
CREATE TABLE cn_relay.event_topics (
  topic_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  pubkey text COLLATE "C" NOT NULL,
  kind integer NOT NULL,
  created_at bigint NOT NULL,
  ingested_at timestamptz NOT NULL,
  ingested_seq bigint NOT NULL,
  expires_at timestamptz,
  non_public boolean NOT NULL DEFAULT false,
  lifetime "char" NOT NULL DEFAULT 'r'
) PARTITION BY LIST (lifetime);
CREATE TABLE cn_relay.event_topics_kept PARTITION OF cn_relay.event_topics FOR VALUES IN ('k');
CREATE TABLE cn_relay.event_topics_regular PARTITION OF cn_relay.event_topics FOR VALUES IN ('r')
  PARTITION BY RANGE (ingested_at);
CREATE INDEX event_topics_time ON cn_relay.event_topics (topic_id, created_at DESC, event_id);
CREATE INDEX event_topics_kind ON cn_relay.event_topics (topic_id, kind, created_at DESC, event_id);
CREATE INDEX event_topics_author ON cn_relay.event_topics (topic_id, pubkey, created_at DESC, event_id);
CREATE INDEX event_topics_seq ON cn_relay.event_topics (topic_id, ingested_seq);

-- Every tag of one letter that is not a link already. A long value stands as its hash (tag_value_key).
CREATE TABLE cn_relay.event_tags (
  name "char" NOT NULL,
  value text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  ingested_at timestamptz NOT NULL,
  lifetime "char" NOT NULL DEFAULT 'r'
) PARTITION BY LIST (lifetime);
CREATE TABLE cn_relay.event_tags_kept PARTITION OF cn_relay.event_tags FOR VALUES IN ('k');
CREATE TABLE cn_relay.event_tags_regular PARTITION OF cn_relay.event_tags FOR VALUES IN ('r')
  PARTITION BY RANGE (ingested_at);
CREATE INDEX event_tags_value ON cn_relay.event_tags (name, value, created_at DESC, event_id);

CREATE FUNCTION cn_relay.tag_value_key(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(value) <= 256 THEN value
              ELSE 'sha256:' || encode(sha256(convert_to(value, 'UTF8')), 'hex') END
$$;

-- One row for every author and target, also for targets that have not come yet.
CREATE TABLE cn_relay.deletion_tombstones (
  pubkey text COLLATE "C" NOT NULL,
  target_event_id text COLLATE "C",
  target_a text COLLATE "C",
  deletion_event_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT now(),
  applied_at timestamptz,
  CHECK ((target_event_id IS NULL) <> (target_a IS NULL))
);
COMMENT ON COLUMN cn_relay.deletion_tombstones.created_at IS
  'created_at of the request: a target_a covers versions up to then.';
CREATE UNIQUE INDEX deletion_tombstones_event ON cn_relay.deletion_tombstones (target_event_id, pubkey)
  WHERE target_event_id IS NOT NULL;
CREATE UNIQUE INDEX deletion_tombstones_address ON cn_relay.deletion_tombstones (target_a)
  WHERE target_a IS NOT NULL;

-- The winning version of every key. It stays as a mark (gone_at) after that version was deleted or has expired:
-- no older one comes back.
CREATE TABLE cn_relay.current_versions (
  class "char" NOT NULL,
  effective_key text COLLATE "C" NOT NULL,
  pubkey text COLLATE "C" NOT NULL,
  kind integer NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  ingested_at timestamptz NOT NULL,
  topics text[] COLLATE "C" NOT NULL,
  event_json json NOT NULL,
  gone_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (effective_key, class)
) PARTITION BY LIST (class);
CREATE TABLE cn_relay.replaceable_current PARTITION OF cn_relay.current_versions FOR VALUES IN ('r');
CREATE TABLE cn_relay.addressable_current PARTITION OF cn_relay.current_versions FOR VALUES IN ('a');

CREATE VIEW cn_relay.effective_events AS
  SELECT * FROM cn_relay.events
  WHERE deleted_at IS NULL AND superseded_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- Ends the effect of one event, `state` being deleted, superseded or expired: marks its row and takes away its
-- links and tags. The row itself stays readable by event_id.
CREATE FUNCTION cn_relay.retire(the_id text, the_ingested_at timestamptz, the_lifetime "char", state text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  e record;
BEGIN
  UPDATE cn_relay.events
    SET deleted_at = CASE WHEN state = 'deleted' THEN now() ELSE deleted_at END,
        superseded_at = CASE WHEN state = 'superseded' THEN now() ELSE superseded_at END,
        expired_at = CASE WHEN state = 'expired' THEN now() ELSE expired_at END
    WHERE event_id = the_id AND ingested_at = the_ingested_at AND lifetime = the_lifetime
    RETURNING created_at, tags, topics, raw INTO e;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  DELETE FROM cn_relay.event_topics
    WHERE topic_id = ANY (e.topics) AND created_at = e.created_at AND event_id = the_id
      AND ingested_at = the_ingested_at AND lifetime = the_lifetime;
  -- SQL can't read tags that hold U+0000; the rows of such an event go when it is purged.
  IF e.raw IS NULL THEN
    DELETE FROM cn_relay.event_tags g
      USING (SELECT DISTINCT (t ->> 0)::"char" AS name, cn_relay.tag_value_key(t ->> 1) AS value
             FROM json_array_elements(e.tags) t
             WHERE (t ->> 0) ~ '^[a-zA-Z]$' AND (t ->> 1) IS NOT NULL) k
      WHERE g.name = k.name AND g.value = k.value AND g.created_at = e.created_at AND g.event_id = the_id
        AND g.ingested_at = the_ingested_at AND g.lifetime = the_lifetime;
  END IF;
END $$;

-- ---------------------------------------------------------------------------------------------- ephemeral

-- Passes ephemeral events to the other relays of this database, for seconds. Lost in a crash, as they may be.
CREATE UNLOGGED TABLE cn_relay.ephemeral_events (
  id bigserial PRIMARY KEY,
  origin text COLLATE "C" NOT NULL,
  event_json bytea NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- ---------------------------------------------------------------------------------------------- partitions

CREATE FUNCTION cn_relay.add_partition(parent text, child text, low text, high text, before_attach text DEFAULT '')
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF to_regclass('cn_relay.' || child) IS NOT NULL THEN
    RETURN false;
  END IF;
  -- Made first and attached then: CREATE ... PARTITION OF would lock out every reader and writer.
  EXECUTE format('CREATE TABLE cn_relay.%I (LIKE cn_relay.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child,
                 parent);
  IF before_attach <> '' THEN
    EXECUTE format(before_attach, child);
  END IF;
  EXECUTE format('ALTER TABLE cn_relay.%I ATTACH PARTITION cn_relay.%I FOR VALUES FROM (%L) TO (%L)', parent,
                 child, low, high);
  RETURN true;
END $$;

-- Makes the partitions for now, for the month of `until`, and for the next two million seqs. The number made.
CREATE FUNCTION cn_relay.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  made integer := 0;
  month timestamp;
  parent text;
  width constant bigint := 1000000;
  first bigint;
  head bigint;
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
    IF cn_relay.add_partition(
         'events_outbox', format('events_outbox_%s', lpad((first / width)::text, 6, '0')), first::text,
         (first + width)::text,
         'CREATE TRIGGER commit_order BEFORE INSERT ON cn_relay.%I '
         'FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.lock_log_trigger()') THEN
      INSERT INTO cn_relay.log_partitions (first_seq, end_seq, table_name)
        VALUES (first, first + width, format('cn_relay.events_outbox_%s', lpad((first / width)::text, 6, '0')))
        ON CONFLICT (first_seq) DO UPDATE SET first_at = NULL, last_at = NULL;
      made := made + 1;
    END IF;
  END LOOP;
  RETURN made;
END $$;

SELECT cn_relay.ensure_partitions(now() + interval '1 month');
