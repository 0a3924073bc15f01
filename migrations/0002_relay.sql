-- The schema cn_relay: what was accepted, what of it is in effect, the log of both, and who follows the log.
--
-- Order. Whoever appends to the log takes one lock first (lock_log), so that the order of seq is the order of
-- commits. Ids are lower-case hex; text that is compared byte by byte has COLLATE "C".
--
-- Lifetimes. `r` events (regular) are dropped by the week; `k` events (versions of replaceable and addressable
-- events, deletion requests, topics that are kept longer) stay until a row is deleted. The two never share a
-- partition, so that a drop never removes what has to stay, and a reader opens one partition more than there are
-- weeks. An `r` event whose topic came to be kept longer becomes a `k` event before its week goes.
--
-- Places. A database that was restored, copied or promoted could give out seqs a second time. The first append
-- afterwards notices, and the log goes on with seqs that nobody has given out before (docs/decisions/0010).
--
-- Consumers from outside. A consumer NAME has the role consumer_NAME, which reads the log and the events and writes
-- its own offset, and nothing else. Its rights are granted to that role and not to the group todoke_consumers: the
-- group belongs to the whole cluster, where other databases may have consumers of their own, and only says who may
-- come in over TCP. For the same reason this file makes no role; `todoke consumers add` does, where it may.
CREATE SCHEMA cn_relay;

-- ---------------------------------------------------------------------------------------------- tables: topics

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
COMMENT ON TABLE cn_relay.node_subscriptions IS
  'The topics that the node knows. It accepts events for those that are enabled; relays hear of every change at once.';
COMMENT ON COLUMN cn_relay.node_subscriptions.name IS
  'The name that it was enabled by, where that is known: an id does not tell it.';
COMMENT ON COLUMN cn_relay.node_subscriptions.pinned IS
  'The operator decided: enabled does not follow ref_count.';

CREATE TABLE cn_relay.gossip_peers (
  node_id text COLLATE "C" PRIMARY KEY CHECK (node_id ~ '^[0-9a-f]{64}$'),
  address text NOT NULL CHECK (octet_length(address) BETWEEN 3 AND 500),
  added_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_relay.gossip_peers IS
  'The nodes that every relay of this database dials for gossip, beside those of the key gossip.peers; relays hear of every change at once.';
COMMENT ON COLUMN cn_relay.gossip_peers.address IS
  'host:port, the URL of an iroh relay server, or both with a + between them';

CREATE FUNCTION cn_names.lock_backfill() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215490;
COMMENT ON FUNCTION cn_names.lock_backfill() IS
  'The process that fills topics from other relays. Session';

CREATE TABLE cn_relay.backfill_cursors (
  peer text COLLATE "C" NOT NULL CHECK (octet_length(peer) BETWEEN 1 AND 1024),
  topic_id text COLLATE "C" NOT NULL CHECK (octet_length(topic_id) BETWEEN 1 AND 1024),
  seq bigint,
  since bigint,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (peer, topic_id)
);
COMMENT ON TABLE cn_relay.backfill_cursors IS
  'How far each topic was filled from each relay that was asked for it (`todoke backfill`, gossip.backfill_from); without a row it is filled from the beginning.';
COMMENT ON COLUMN cn_relay.backfill_cursors.seq IS 'The place in the log of a todoke relay up to which its events are here.';
COMMENT ON COLUMN cn_relay.backfill_cursors.since IS
  'Of other relays: when the last filling that came to its end began, in unix seconds.';

-- ---------------------------------------------------------------------------------------------- tables: the log

-- Every seq is below 2^53, so that a JSON number holds it.
CREATE SEQUENCE cn_relay.events_outbox_seq AS bigint MAXVALUE 9007199254740991 CACHE 1;

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
ALTER SEQUENCE cn_relay.events_outbox_seq OWNED BY cn_relay.events_outbox.seq;
COMMENT ON TABLE cn_relay.events_outbox IS
  'The log: a row for each topic of each event that came into effect or lost it. The order of seq is the order of commits.';
COMMENT ON COLUMN cn_relay.events_outbox.ingested_at IS
  'When the event was accepted, as in events: (event_id, ingested_at) finds it.';
COMMENT ON COLUMN cn_relay.events_outbox.appended_at IS 'When this row was written.';

CREATE TABLE cn_relay.log_partitions (
  first_seq bigint PRIMARY KEY,
  end_seq bigint NOT NULL,
  table_name text NOT NULL,
  first_at timestamptz,
  last_at timestamptz
);
COMMENT ON TABLE cn_relay.log_partitions IS
  'Which seqs a partition of the log holds, and from when to when its rows were written: retention by time reads this.';

CREATE TABLE cn_relay.log_floor (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  dropped_until bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE cn_relay.log_floor IS
  'How far retention has emptied the log: rows up to dropped_until are gone, and nobody can replay them.';

CREATE TABLE cn_relay.log_identity (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  system_identifier text NOT NULL,
  timeline integer NOT NULL,
  backup text,
  database oid,
  written_by xid,
  since_seq bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE cn_relay.log_identity IS 'The place in which the log was written last.';
COMMENT ON COLUMN cn_relay.log_identity.backup IS
  'backup_label.old of the cluster, which tells a base backup that replaced its own cluster; NULL where there is none or we may not read it.';
COMMENT ON COLUMN cn_relay.log_identity.written_by IS
  'xmin of this row. A dump holds this value, but the row that is made of it gets another xmin.';
COMMENT ON COLUMN cn_relay.log_identity.since_seq IS 'In this place seqs were given out after this one.';

-- ---------------------------------------------------------------------------------------------- tables: consumers

CREATE TABLE cn_relay.consumer_offsets (
  consumer text COLLATE "C" PRIMARY KEY,
  last_seq bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  epoch bigint NOT NULL DEFAULT 0,
  owner text,
  lease_until timestamptz,
  mandatory boolean NOT NULL DEFAULT false,
  paused boolean NOT NULL DEFAULT false,
  state text COLLATE "C" NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'rebuilding', 'needs_rebuild')),
  rebuild_done bigint NOT NULL DEFAULT 0,
  rebuild_total bigint NOT NULL DEFAULT 0,
  rebuild_since timestamptz,
  purged_rows bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_relay.consumer_offsets IS
  'Who follows the log and how far it has read. A consumer that knows only the first three columns works: the others have defaults.';
COMMENT ON COLUMN cn_relay.consumer_offsets.epoch IS
  'Grows with every change of hands: an instance of an older epoch can not commit.';
COMMENT ON COLUMN cn_relay.consumer_offsets.mandatory IS 'Holds retention of the log back, up to log.retention_max.';
COMMENT ON COLUMN cn_relay.consumer_offsets.purged_rows IS
  'Rows that were passed over because their event had been purged already.';

CREATE TABLE cn_relay.consumer_effects (
  consumer text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  topic_id text COLLATE "C" NOT NULL DEFAULT '',
  op text COLLATE "C" NOT NULL DEFAULT '',
  seq bigint NOT NULL,
  PRIMARY KEY (consumer, event_id, topic_id, op)
);
COMMENT ON TABLE cn_relay.consumer_effects IS
  'Effects that must not be repeated: once for an event (topic_id and op empty), or once for a row of the log.';
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
COMMENT ON TABLE cn_relay.consumer_dead_letters IS
  'Rows of the log that a consumer could not handle and has passed over, each once.';
COMMENT ON COLUMN cn_relay.consumer_dead_letters.retry IS 'Somebody asked for another try.';
CREATE INDEX consumer_dead_letters_retry ON cn_relay.consumer_dead_letters (consumer) WHERE retry;
-- Whoever erases an event looks for them under the log's lock.
CREATE INDEX consumer_dead_letters_event ON cn_relay.consumer_dead_letters (event_id);

CREATE TABLE cn_relay.consumer_ranges (
  consumer text COLLATE "C" NOT NULL,
  from_seq bigint NOT NULL,
  to_seq bigint NOT NULL,
  row_count bigint NOT NULL,
  row_hash bigint NOT NULL,
  PRIMARY KEY (consumer, from_seq)
);
COMMENT ON TABLE cn_relay.consumer_ranges IS
  'What a consumer says that it has read, for `todoke audit`: how many rows of (from_seq, to_seq], and the exclusive or of their hashes. row_count -1: a replay cut the range, and how much of it was read is no longer known.';

-- ---------------------------------------------------------------------------------------------- tables: events

CREATE TABLE cn_relay.event_dedupe (
  event_id text COLLATE "C" PRIMARY KEY,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  seen_count bigint NOT NULL DEFAULT 1,
  keep_days integer,
  purged_at timestamptz
);
COMMENT ON TABLE cn_relay.event_dedupe IS
  'Every id that was accepted: an id is accepted once, also after its event was purged.';
COMMENT ON COLUMN cn_relay.event_dedupe.purged_at IS
  'When the event was purged by itself, and not with its week: `todoke audit` so knows that it is not lost.';
COMMENT ON COLUMN cn_relay.event_dedupe.keep_days IS
  'The longest dedupe_days of the event''s topics when it was accepted; NULL: none had any, and retention.dedupe_days holds.';

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
CREATE TABLE cn_relay.events_kept PARTITION OF cn_relay.events FOR VALUES IN ('k');
CREATE TABLE cn_relay.events_regular PARTITION OF cn_relay.events FOR VALUES IN ('r')
  PARTITION BY RANGE (ingested_at);
COMMENT ON TABLE cn_relay.events IS
  'Every stored event, in effect or not; effective_events shows those that are. event_dedupe keeps ids unique.';
COMMENT ON COLUMN cn_relay.events.ingested_seq IS 'The seq of the first row of the log that names the event.';
COMMENT ON COLUMN cn_relay.events.topics IS 'The topics that the event was accepted for.';
COMMENT ON COLUMN cn_relay.events.expired_at IS 'When the log was told that the event has expired.';
COMMENT ON COLUMN cn_relay.events.raw IS
  'The event as JSON, where its text holds U+0000: content has U+FFFD in its place then, and SQL can not read the tags.';
CREATE INDEX events_id ON cn_relay.events (event_id);
-- What retention and capacity walk through. Neither has an entry for a regular event in effect.
CREATE INDEX events_kept_age ON cn_relay.events_kept (ingested_at, event_id) WHERE effective_key IS NULL;
CREATE INDEX events_lost ON cn_relay.events (least(deleted_at, superseded_at, expired_at), event_id)
  WHERE deleted_at IS NOT NULL OR superseded_at IS NOT NULL OR expired_at IS NOT NULL;
CREATE INDEX events_expiry ON cn_relay.events (expires_at)
  WHERE expires_at IS NOT NULL AND expired_at IS NULL AND deleted_at IS NULL AND superseded_at IS NULL;

CREATE TABLE cn_relay.topic_numbers (
  topic_id text COLLATE "C" PRIMARY KEY,
  topic_no integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE
);
COMMENT ON TABLE cn_relay.topic_numbers IS
  'The number by which links name a topic: a topic id has up to 71 bytes and stands in every index of the links.';

CREATE TABLE cn_relay.topic_links (
  created_at bigint NOT NULL,
  ingested_at timestamptz NOT NULL,
  ingested_seq bigint NOT NULL,
  short_id bigint NOT NULL,
  short_author bigint NOT NULL,
  topic_no integer NOT NULL,
  kind integer NOT NULL,
  non_public boolean NOT NULL DEFAULT false,
  lifetime "char" NOT NULL DEFAULT 'r',
  event_id bytea NOT NULL,
  expires_at timestamptz
) PARTITION BY LIST (lifetime);
CREATE TABLE cn_relay.topic_links_kept PARTITION OF cn_relay.topic_links FOR VALUES IN ('k');
CREATE TABLE cn_relay.topic_links_regular PARTITION OF cn_relay.topic_links FOR VALUES IN ('r')
  PARTITION BY RANGE (ingested_at);
COMMENT ON TABLE cn_relay.topic_links IS
  'A link for each topic of each event in effect, with what a query for a topic needs before its limit: no join. event_topics shows it with ids and topics as text.';
COMMENT ON COLUMN cn_relay.topic_links.short_id IS
  'cn_relay.short_id(event_id): sorts as the id does. Two events that share it are told apart by event_id, which no index has.';
COMMENT ON COLUMN cn_relay.topic_links.short_author IS
  'cn_relay.short_id(pubkey): whoever must know the author looks at the event.';
-- Time ascends: events come about in its order, and pages of an index that grow at their end are left full. Read backwards they
-- give the newest first.
CREATE INDEX topic_links_time ON cn_relay.topic_links (topic_no, created_at, short_id DESC);
CREATE INDEX topic_links_kind ON cn_relay.topic_links (topic_no, kind, created_at, short_id DESC);
CREATE INDEX topic_links_author ON cn_relay.topic_links (topic_no, short_author, created_at, short_id DESC);
CREATE INDEX topic_links_seq ON cn_relay.topic_links (topic_no, ingested_seq);

CREATE VIEW cn_relay.event_topics AS
  SELECT n.topic_id, encode(l.event_id, 'hex') COLLATE "C" AS event_id, l.kind, l.created_at, l.ingested_at, l.ingested_seq,
    l.expires_at, l.non_public, l.lifetime
  FROM cn_relay.topic_links l JOIN cn_relay.topic_numbers n USING (topic_no);
COMMENT ON VIEW cn_relay.event_topics IS 'The links of events in effect to their topics, to be read by people.';

CREATE TABLE cn_relay.topic_usage (
  topic_id text COLLATE "C" NOT NULL,
  week timestamptz NOT NULL,
  events bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (topic_id, week)
) WITH (fillfactor = 40, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE cn_relay.topic_usage IS
  'How many events are stored, in effect or not, for each topic and each partition. An event of several topics counts in each; the rows of the topic '''' count each event once.';
COMMENT ON COLUMN cn_relay.topic_usage.week IS
  'When the weekly partition begins that holds them (UTC, Monday); -infinity: events_kept.';
COMMENT ON COLUMN cn_relay.topic_usage.bytes IS
  'An estimate of what they take in tables and indexes, without log and search: cn_relay.event_bytes() of each.';

CREATE TABLE cn_relay.purge_walks (
  walk text COLLATE "C" PRIMARY KEY,
  after_time timestamptz NOT NULL DEFAULT 'epoch',
  after_text text COLLATE "C" NOT NULL DEFAULT '',
  after_number bigint NOT NULL DEFAULT 0,
  finished_at timestamptz
);
COMMENT ON TABLE cn_relay.purge_walks IS
  'How far each walk of retention has come, so that the next process goes on there. Which of the three places a walk uses is its own affair; under the purge lock.';
COMMENT ON COLUMN cn_relay.purge_walks.finished_at IS 'When it was at the end the last time; it begins anew then.';

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
COMMENT ON TABLE cn_relay.event_tags IS
  'Every tag of one letter of the events in effect that is not a link already. tag_value_key gives the value as it stands here. What one of the node''s own keys has signed is found without a topic: by the name ''.'' and the key.';
CREATE INDEX event_tags_value ON cn_relay.event_tags (name, value, created_at DESC, event_id);

CREATE TABLE cn_relay.deletion_tombstones (
  pubkey text COLLATE "C" NOT NULL,
  target_event_id text COLLATE "C",
  target_a text COLLATE "C",
  deletion_event_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT now(),
  applied_at timestamptz,
  keep_days integer,
  CHECK ((target_event_id IS NULL) <> (target_a IS NULL))
);
COMMENT ON TABLE cn_relay.deletion_tombstones IS
  'One row for every author and target of a deletion, also for targets that have not come yet.';
COMMENT ON COLUMN cn_relay.deletion_tombstones.keep_days IS
  'The longest tombstone_days of the request''s topics when it was accepted; NULL: none had any, and retention.tombstone_days holds.';
COMMENT ON COLUMN cn_relay.deletion_tombstones.created_at IS
  'created_at of the request: a target_a covers versions up to then.';
CREATE UNIQUE INDEX deletion_tombstones_event ON cn_relay.deletion_tombstones (target_event_id, pubkey)
  WHERE target_event_id IS NOT NULL;
CREATE UNIQUE INDEX deletion_tombstones_address ON cn_relay.deletion_tombstones (target_a)
  WHERE target_a IS NOT NULL;

CREATE TABLE cn_relay.vanish_requests (
  pubkey text COLLATE "C" PRIMARY KEY,
  request_id text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT now(),
  pass bigint,
  moved boolean NOT NULL DEFAULT false,
  done_at timestamptz
);
COMMENT ON TABLE cn_relay.vanish_requests IS
  'Who has asked to be forgotten (NIP-62), for ever: no event of theirs from before is taken any more. done_at: those that were here are erased.';
COMMENT ON COLUMN cn_relay.vanish_requests.until IS
  'created_at of the newest request: their events up to then, and gift wraps for them up to then, are gone or going.';
COMMENT ON COLUMN cn_relay.vanish_requests.pass IS 'The pass over the events that looks for theirs now.';
COMMENT ON COLUMN cn_relay.vanish_requests.moved IS
  'A row of theirs was written anew during the pass, perhaps to where the pass has been: another one has to look.';
CREATE INDEX vanish_requests_open ON cn_relay.vanish_requests (requested_at) WHERE done_at IS NULL;
CREATE INDEX vanish_requests_pass ON cn_relay.vanish_requests (pass) WHERE pass IS NOT NULL;

CREATE TABLE cn_relay.blocks (
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('pubkey', 'event', 'ip', 'topic')),
  value text COLLATE "C" NOT NULL CHECK (octet_length(value) BETWEEN 1 AND 1024),
  reason text CHECK (octet_length(reason) <= 1024),
  until timestamptz,
  added_at timestamptz NOT NULL DEFAULT now(),
  added_by text NOT NULL DEFAULT cn_admin.actor(),
  erase_at timestamptz,
  pass bigint,
  moved boolean NOT NULL DEFAULT false,
  erased_at timestamptz,
  PRIMARY KEY (kind, value),
  CHECK (kind NOT IN ('pubkey', 'event') OR value ~ '^[0-9a-f]{64}$'),
  CHECK (kind <> 'ip' OR erase_at IS NULL)
);
COMMENT ON TABLE cn_relay.blocks IS
  'What the operator keeps out: events by their author, their id or a topic, and connections by their address. Relays hear of every change at once; cn_admin.audit has every change.';
COMMENT ON COLUMN cn_relay.blocks.value IS
  'A key or an id in hex, a topic id, an address or a block of addresses such as 10.0.0.0/8.';
COMMENT ON COLUMN cn_relay.blocks.until IS 'When it ends by itself; NULL: never.';
COMMENT ON COLUMN cn_relay.blocks.erase_at IS 'When the operator asked to erase what is stored of it; NULL: that stays.';
COMMENT ON COLUMN cn_relay.blocks.pass IS 'The pass over the events that looks for its events now.';
COMMENT ON COLUMN cn_relay.blocks.moved IS 'As in vanish_requests.';
COMMENT ON COLUMN cn_relay.blocks.erased_at IS 'Since when nothing is left of what was stored.';
CREATE INDEX blocks_erase ON cn_relay.blocks (erase_at) WHERE erase_at IS NOT NULL AND erased_at IS NULL;
CREATE INDEX blocks_pass ON cn_relay.blocks (pass) WHERE pass IS NOT NULL;
-- Each batch of events asks whether there are new ones.
CREATE INDEX blocks_added ON cn_relay.blocks (added_at);

CREATE TABLE cn_relay.erase_pass (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  number bigint NOT NULL DEFAULT 0,
  under_way boolean NOT NULL DEFAULT false,
  began_at timestamptz,
  rest_until timestamptz NOT NULL DEFAULT '-infinity',
  next_block bigint NOT NULL DEFAULT 0,
  events_end bigint NOT NULL DEFAULT 0,
  versions_end bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE cn_relay.erase_pass IS
  'How far the pass has come that erases the events of those who vanish, and of what the operator has blocked and wants erased: it reads all partitions of events block by block, up to events_end, then those of current_versions, up to versions_end.';
COMMENT ON COLUMN cn_relay.erase_pass.rest_until IS
  'Requests to vanish begin no pass before: anybody can send them, and each pass reads every event.';

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
COMMENT ON TABLE cn_relay.current_versions IS
  'The winning version of every key. It stays as a mark (gone_at) after that version was deleted or has expired: no older one comes back.';

CREATE UNLOGGED TABLE cn_relay.ephemeral_events (
  id bigserial PRIMARY KEY,
  origin text COLLATE "C" NOT NULL,
  event_json bytea NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE cn_relay.ephemeral_events IS
  'Passes ephemeral events to the other relays of this database, for seconds. Lost in a crash, as they may be.';

CREATE VIEW cn_relay.effective_events AS
  SELECT * FROM cn_relay.events
  WHERE deleted_at IS NULL AND superseded_at IS NULL AND (expires_at IS NULL OR expires_at > now());
COMMENT ON VIEW cn_relay.effective_events IS 'The events that are in effect now: neither deleted, replaced nor expired.';

-- ---------------------------------------------------------------------------------------------- functions: topics

-- What is wrong with an ingest_policy, for people; NULL: nothing.
CREATE FUNCTION cn_relay.ingest_policy_problem(policy jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  name text;
  value jsonb;
BEGIN
  IF jsonb_typeof(policy) <> 'object' THEN
    RETURN 'ingest_policy must be an object';
  END IF;
  FOR name, value IN SELECT * FROM jsonb_each(policy) LOOP
    IF name IN ('retention_days', 'superseded_days', 'deletion_days', 'tombstone_days', 'dedupe_days') THEN
      -- A hundred years: what is kept for ever says so by this.
      IF jsonb_typeof(value) <> 'number' OR value::text !~ '^[0-9]{1,5}$' OR value::text::integer NOT BETWEEN 1 AND 36500 THEN
        RETURN format('%s must be a number of days from 1 to 36500', name);
      END IF;
    ELSIF name IN ('max_events', 'max_bytes', 'max_delay_seconds') THEN
      IF jsonb_typeof(value) <> 'number' OR value::text !~ '^[0-9]{1,15}$' OR value::text = '0' THEN
        RETURN format('%s must be a positive integer', name);
      END IF;
    ELSIF name = 'allow_backfill' THEN
      IF jsonb_typeof(value) <> 'boolean' THEN
        RETURN 'allow_backfill must be true or false';
      END IF;
    ELSIF name = 'when_full' THEN
      IF value NOT IN ('"refuse"', '"drop_oldest"') THEN
        RETURN 'when_full must be refuse or drop_oldest';
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

-- Refuses a wrong ingest_policy. A topic that is not pinned is enabled while ref_count is above 0.
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

-- Tells the relays of this database that topics have changed.
CREATE FUNCTION cn_relay.notify_topics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_topics(), '');
  RETURN NULL;
END $$;

CREATE FUNCTION cn_relay.notify_gossip() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_gossip(), '');
  RETURN NULL;
END $$;

CREATE FUNCTION cn_relay.notify_blocks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_blocks(), '');
  RETURN NULL;
END $$;

-- Writes a change of the blocks to the audit. SECURITY DEFINER: the role that a node runs as can't write there itself.
CREATE FUNCTION cn_relay.note_block_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'pass' - 'moved' END;
  after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'pass' - 'moved' END;
BEGIN
  INSERT INTO cn_admin.audit (actor, action, subject, before, after)
  VALUES (cn_admin.actor(), format('block %s', CASE TG_OP WHEN 'INSERT' THEN 'add' WHEN 'UPDATE' THEN 'change' ELSE 'remove' END),
    format('%s %s', coalesce(after, before) ->> 'kind', coalesce(after, before) ->> 'value'), before, after);
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- functions: partitions

-- Makes the table `child` and attaches it to `parent`. False: it was there already. `before_attach` is a statement that
-- runs in between, with the name of the table as %I.
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

-- When the week of a time begins: Monday, UTC.
CREATE FUNCTION cn_relay.week_of(at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_trunc('week', at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';

-- The name of the partition of `parent` for the week that begins then, such as events_2026_11_16.
CREATE FUNCTION cn_relay.week_table(parent text, week timestamptz) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN parent || to_char(week AT TIME ZONE 'UTC', '_YYYY_MM_DD');

-- Makes the partitions for regular events of the week of `at`. Returns how many it made. The caller has the lock of the
-- partitions.
CREATE FUNCTION cn_relay.ensure_week(at timestamptz) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made integer := 0;
  week constant timestamptz := cn_relay.week_of(at);
  parent text;
BEGIN
  FOREACH parent IN ARRAY ARRAY['events', 'topic_links', 'event_tags'] LOOP
    made := made + cn_relay.add_partition(
      parent || '_regular', cn_relay.week_table(parent, week),
      to_char(week AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' 00:00:00+00',
      to_char(week AT TIME ZONE 'UTC' + interval '7 days', 'YYYY-MM-DD') || ' 00:00:00+00')::integer;
  END LOOP;
  RETURN made;
END $$;

-- Makes the partitions for now, for the weeks up to that of `until` (at most a year ahead), and for the next two million seqs.
-- Returns how many it made.
CREATE FUNCTION cn_relay.ensure_partitions(until timestamptz) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made integer := 0;
  week timestamp;
  width constant bigint := 1000000;
  first bigint;
  head bigint;
  child text;
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_relay_partitions());
  FOR week IN
    SELECT generate_series(cn_relay.week_of(now()) AT TIME ZONE 'UTC',
                           cn_relay.week_of(greatest(least(until, now() + interval '1 year'), now())) AT TIME ZONE 'UTC',
                           interval '7 days')
  LOOP
    made := made + cn_relay.ensure_week(week AT TIME ZONE 'UTC');
  END LOOP;
  SELECT last_value INTO head FROM cn_relay.events_outbox_seq;
  FOR i IN 0..1 LOOP
    first := (head / width + i) * width;
    child := (first / width)::text;
    child := 'events_outbox_' || lpad(child, greatest(6, length(child)), '0');
    -- An INSERT straight into a partition does not fire the parent's trigger.
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

-- Drops the partition of the log that begins with the seq `first`. Refuses while rows of it may still be needed: the log must
-- have gone beyond it, and its rows must lie below the floor. An open transaction that has read the log keeps it from going:
-- then this ends with lock_not_available after a tenth of a second, during which readers and writers of the log wait behind it.
CREATE FUNCTION cn_relay.drop_log_partition(first bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  partition cn_relay.log_partitions;
BEGIN
  SELECT * INTO STRICT partition FROM cn_relay.log_partitions p WHERE p.first_seq = first;
  IF EXISTS (SELECT FROM cn_relay.events_outbox o, cn_relay.log_floor f
             WHERE o.seq > f.dropped_until AND o.seq >= first AND o.seq < partition.end_seq)
     OR NOT EXISTS (SELECT FROM cn_relay.events_outbox o WHERE o.seq >= partition.end_seq) THEN
    RAISE EXCEPTION '% holds rows that are still in the log', partition.table_name
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  -- The name is what a node has written; only a partition of the log is dropped.
  EXECUTE (SELECT format('DROP TABLE %s', i.inhrelid::regclass) FROM pg_inherits i
           WHERE i.inhrelid = to_regclass(partition.table_name) AND i.inhparent = 'cn_relay.events_outbox'::regclass);
  DELETE FROM cn_relay.log_partitions p WHERE p.first_seq = first;
END $$;

-- Makes the indexes that a relay without topics (relay.topic_policy = open) reads by. As those of topic_links: narrow, and
-- with time ascending.
CREATE FUNCTION cn_relay.ensure_open_indexes() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_relay_partitions());
  CREATE INDEX IF NOT EXISTS events_open_author
    ON cn_relay.events (cn_relay.short_id(pubkey), created_at, cn_relay.short_id(event_id) DESC);
  CREATE INDEX IF NOT EXISTS events_open_author_kind
    ON cn_relay.events (cn_relay.short_id(pubkey), kind, created_at, cn_relay.short_id(event_id) DESC);
  CREATE INDEX IF NOT EXISTS events_open_kind ON cn_relay.events (kind, created_at, cn_relay.short_id(event_id) DESC);
  CREATE INDEX IF NOT EXISTS events_open_time ON cn_relay.events (created_at, cn_relay.short_id(event_id) DESC);
  CREATE INDEX IF NOT EXISTS events_open_seq ON cn_relay.events (ingested_seq);
END $$;

-- ---------------------------------------------------------------------------------------------- functions: the log

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
  PERFORM pg_advisory_xact_lock(cn_names.lock_log());
  SELECT greatest(s.last_value, seen) INTO given_out FROM cn_relay.events_outbox_seq s;
  since := CASE WHEN clock > given_out AND clock < clock_max THEN clock ELSE given_out + day + clock % day END;
  PERFORM setval('cn_relay.events_outbox_seq', since);
  PERFORM cn_relay.note_log_place(since);
  PERFORM cn_relay.ensure_partitions(now());
  RETURN since;
END $$;

-- Under the log's lock. Lets the log go on later if this is not the place in which it was written last, or if its head is behind
-- what the caller has seen; where `may_move` is false that is refused. SECURITY DEFINER: the role that a node runs as can neither
-- set the sequence nor read the label of a backup.
CREATE FUNCTION cn_relay.check_log(seen bigint, may_move boolean, OUT head bigint, OUT since bigint, OUT moved boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
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

-- Takes the lock of the log until the transaction ends. A session that then falls silent is cut after 5 s, so that it can't stop
-- everybody else. `head` is the last seq that was given out before, `since` says when the log has moved to another place, `moved`
-- that it was this call which noticed. `seen`: a seq that the caller knows of.
--
-- Only the first call of a session looks at the place itself, which can't change while the session lives; a dump that is restored
-- under it shows in the row. For the others that is 5 µs on top of 10.
CREATE FUNCTION cn_relay.lock_log(seen bigint DEFAULT 0, OUT waited double precision, OUT head bigint, OUT since bigint,
                                  OUT moved boolean) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_log());
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  waited := extract(epoch FROM clock_timestamp() - statement_timestamp());
  moved := false;
  SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END, i.since_seq INTO head, since
    FROM cn_relay.events_outbox_seq s LEFT JOIN cn_relay.log_identity i ON i.xmin = i.written_by;
  IF head < seen OR since IS NULL OR current_setting('todoke.log_since', true) IS DISTINCT FROM since::text THEN
    SELECT c.head, c.since, c.moved INTO head, since, moved FROM cn_relay.check_log(seen, true) c;
  END IF;
END $$;

-- The lock for writers that do not know of it. A partition can't be made while an INSERT is under way: the trigger refuses where
-- the log has to go on later.
CREATE FUNCTION cn_relay.lock_log_trigger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_log());
  PERFORM set_config('idle_in_transaction_session_timeout', '5000', true);
  IF NOT EXISTS (SELECT FROM cn_relay.log_identity i
                 WHERE i.xmin = i.written_by AND i.since_seq::text = current_setting('todoke.log_since', true)) THEN
    PERFORM cn_relay.check_log(0, false);
  END IF;
  RETURN NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- functions: events

-- The first 8 bytes of an id or a key in hex, as a number that sorts as they do; '' comes before all.
CREATE FUNCTION cn_relay.short_id(id text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || left(id, 16))::bit(64)::bigint # (-9223372036854775808);

-- The number of a topic, made where it has none. Under the log's lock.
CREATE FUNCTION cn_relay.topic_no(topic text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  number integer;
BEGIN
  SELECT n.topic_no INTO number FROM cn_relay.topic_numbers n WHERE n.topic_id = topic;
  IF number IS NULL THEN
    INSERT INTO cn_relay.topic_numbers (topic_id) VALUES (topic) RETURNING topic_no INTO number;
  END IF;
  RETURN number;
END $$;

-- The value of a tag as event_tags holds it: a long one as its hash.
CREATE FUNCTION cn_relay.tag_value_key(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(value) <= 256 THEN value
              ELSE 'sha256:' || encode(sha256(convert_to(value, 'UTF8')), 'hex') END
$$;

-- The keys in the `p` tags of an event, from its tags as JSON text: as the relay writes it, without white space. Also where the
-- tags hold U+0000 and SQL can't read them.
CREATE FUNCTION cn_relay.recipients_in(tags text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(SELECT m[1] FROM regexp_matches(tags, '\["p","([0-9a-f]{64})"', 'g') m)
$$;

-- The rows of event_tags that an event of these tags can have, apart from topics that are links; that of the name '.' only an
-- event of one of the node's own keys has. `has_nul`: its text holds U+0000,
-- which SQL can't read: a character for private use stands for it meanwhile, and such a value is known by the hash of its bytes.
CREATE FUNCTION cn_relay.tag_keys(author text, tags json, has_nul boolean) RETURNS TABLE (name "char", value text) LANGUAGE sql IMMUTABLE AS $$
  SELECT DISTINCT (t ->> 0)::"char",
    CASE WHEN has_nul AND strpos(t ->> 1, chr(63743)) > 0
      THEN 'sha256:' || encode(sha256(decode(replace(
             regexp_replace(encode(convert_to(t ->> 1, 'UTF8'), 'hex'), '(..)', '\1 ', 'g'), 'ef a3 bf', '00'), 'hex')), 'hex')
      ELSE cn_relay.tag_value_key(t ->> 1) END
  FROM json_array_elements(
    CASE WHEN has_nul THEN regexp_replace(tags::text, '(?<!\\)((\\\\)*)\\u0000', '\1' || chr(63743), 'g')::json ELSE tags END) t
  WHERE (t ->> 0) ~ '^[a-zA-Z]$' AND (t ->> 1) IS NOT NULL
  UNION ALL SELECT '.', author
$$;

-- Deletes the links and tags of one event, whose row says what they are.
CREATE FUNCTION cn_relay.unlink(the_id text, the_ingested_at timestamptz, the_lifetime "char", the_time bigint, author text,
                                tags json, topics text[], raw bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM cn_relay.topic_links l
    WHERE l.topic_no = ANY (ARRAY(SELECT n.topic_no FROM cn_relay.topic_numbers n WHERE n.topic_id = ANY (topics)))
      AND l.created_at = the_time AND l.short_id = cn_relay.short_id(the_id) AND l.event_id = decode(the_id, 'hex')
      AND l.ingested_at = the_ingested_at AND l.lifetime = the_lifetime;
  DELETE FROM cn_relay.event_tags g USING cn_relay.tag_keys(author, tags, raw IS NOT NULL) k
    WHERE g.name = k.name AND g.value = k.value AND g.created_at = the_time AND g.event_id = the_id
      AND g.ingested_at = the_ingested_at AND g.lifetime = the_lifetime;
END $$;

-- Which block keeps an event out, as a verdict of store_events: 5 its author, 6 itself, 7 one of its topics; NULL: none.
CREATE FUNCTION cn_relay.block_verdict(event_id text, pubkey text, topics text[]) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  at constant timestamptz := now();
BEGIN
  IF EXISTS (SELECT FROM cn_relay.blocks b WHERE b.kind = 'pubkey' AND b.value = pubkey AND coalesce(b.until, 'infinity') > at) THEN
    RETURN 5;
  ELSIF EXISTS (SELECT FROM cn_relay.blocks b WHERE b.kind = 'event' AND b.value = event_id AND coalesce(b.until, 'infinity') > at) THEN
    RETURN 6;
  ELSIF EXISTS (SELECT FROM unnest(topics) AS t (id) CROSS JOIN LATERAL (
                  SELECT FROM cn_relay.blocks b
                  WHERE b.kind = 'topic' AND b.value = t.id AND coalesce(b.until, 'infinity') > at LIMIT 1) x) THEN
    RETURN 7;
  END IF;
  RETURN NULL;
END $$;

-- When an event may go by its age: `lost_at` is when it lost its effect, the periods are those of the node in days. Never
-- (infinity): the current version of its key.
CREATE FUNCTION cn_relay.event_due(effective_key text, kind integer, topics text[], ingested_at timestamptz,
                                   lost_at timestamptz, regular_days integer, superseded_days integer,
                                   deletion_days integer) RETURNS timestamptz LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF effective_key IS NOT NULL THEN
    RETURN coalesce(lost_at + make_interval(hours => 24 * cn_relay.topic_days(topics, 'superseded_days', superseded_days)),
                    'infinity');
  ELSIF kind IN (5, 62) THEN
    RETURN ingested_at + make_interval(hours => 24 * cn_relay.topic_days(topics, 'deletion_days', deletion_days));
  END IF;
  RETURN ingested_at + make_interval(hours => 24 * cn_relay.topic_days(topics, 'retention_days', regular_days));
END $$;

-- The row of an event was written anew: it may stand in another place now, where the pass that looks for it has been.
CREATE FUNCTION cn_relay.note_moved(author text, the_kind integer, the_time bigint, tags json, topics text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT p.under_way FROM cn_relay.erase_pass p) THEN
    UPDATE cn_relay.vanish_requests q SET moved = true
      WHERE q.pass IS NOT NULL AND q.until >= the_time AND q.pubkey = ANY (
        CASE WHEN the_kind = 1059 THEN array_append(cn_relay.recipients_in(tags::text), author) ELSE ARRAY[author] END);
    UPDATE cn_relay.blocks b SET moved = true
      WHERE b.pass IS NOT NULL AND ((b.kind = 'pubkey' AND b.value = author) OR (b.kind = 'topic' AND b.value = ANY (topics)));
  END IF;
END $$;

-- Ends the effect of one event, `state` being deleted, superseded or expired: marks its row and deletes its
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
    RETURNING pubkey, kind, created_at, tags, topics, raw INTO e;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM cn_relay.unlink(the_id, the_ingested_at, the_lifetime, e.created_at, e.pubkey, e.tags, e.topics, e.raw);
  PERFORM cn_relay.note_moved(e.pubkey, e.kind, e.created_at, e.tags, e.topics);
END $$;

-- Deletes one event with its links and tags, and takes it out of topic_usage. Under the log's lock.
CREATE FUNCTION cn_relay.erase(the_id text, the_ingested_at timestamptz, the_lifetime "char") RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  e record;
BEGIN
  DELETE FROM cn_relay.events
    WHERE event_id = the_id AND ingested_at = the_ingested_at AND lifetime = the_lifetime
    RETURNING pubkey, created_at, tags, topics, raw, cn_relay.event_bytes(content, tags::text, raw) AS bytes INTO e;
  IF FOUND THEN
    PERFORM cn_relay.unlink(the_id, the_ingested_at, the_lifetime, e.created_at, e.pubkey, e.tags, e.topics, e.raw);
    UPDATE cn_relay.topic_usage u SET events = u.events - 1, bytes = u.bytes - e.bytes
      WHERE u.topic_id = ANY (e.topics || ''::text)
        AND u.week = CASE the_lifetime WHEN 'r' THEN cn_relay.week_of(the_ingested_at) ELSE '-infinity' END;
  END IF;
END $$;

-- ---------------------------------------------------------------------------------------------- functions: retention

-- About what an event takes in tables and indexes, the log and the search index apart: a fixed part for the rows and index
-- entries of the event, its link and its dedupe row, and its text, in which tags count five times: each of one letter
-- has a row and an index entry of its own. Of 30,500 events with 201 bytes of text, 81 of tags and one topic each took about 1,470 bytes.
CREATE FUNCTION cn_relay.event_bytes(content text, tags text, raw bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 800 + octet_length(content) + 5 * octet_length(tags) + coalesce(octet_length(raw), 0);

-- The longest of the periods called `name` (retention_days, ...) that these topics have, in days; a topic without one, and an
-- event without topics, has `fallback`.
CREATE FUNCTION cn_relay.topic_days(topics text[], name text, fallback integer) RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  longest integer := CASE WHEN cardinality(topics) = 0 THEN fallback ELSE 0 END;
  topic text;
BEGIN
  FOREACH topic IN ARRAY topics LOOP
    longest := greatest(longest, coalesce((SELECT (s.ingest_policy ->> topic_days.name)::integer
                                           FROM cn_relay.node_subscriptions s WHERE s.topic_id = topic), fallback));
  END LOOP;
  RETURN longest;
END $$;

-- The longest period of regular events: that of the node or of a topic.
CREATE FUNCTION cn_relay.longest_days(regular_days integer) RETURNS integer LANGUAGE sql STABLE
RETURN greatest(regular_days, (SELECT max((s.ingest_policy ->> 'retention_days')::integer) FROM cn_relay.node_subscriptions s
                               WHERE s.ingest_policy ? 'retention_days'));

-- The shortest of the periods called by one of `names` that any topic has, and of `fallback`, in days.
CREATE FUNCTION cn_relay.shortest_days(names text[], fallback integer) RETURNS integer LANGUAGE sql STABLE
RETURN least(fallback, (SELECT min((s.ingest_policy ->> n.name)::integer)
                        FROM cn_relay.node_subscriptions s CROSS JOIN unnest(names) AS n (name)
                        WHERE s.ingest_policy ? n.name));

-- Takes the purge lock for this session, and waits for it so long at most. Who waits is next, whoever comes without waiting
-- meanwhile. False: somebody else has it.
CREATE FUNCTION cn_relay.take_purge_lock(wait_ms integer) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_try_advisory_lock(cn_names.lock_purge()) THEN
    RETURN true;
  ELSIF wait_ms <= 0 THEN
    RETURN false;
  END IF;
  PERFORM set_config('lock_timeout', wait_ms::text, true);
  PERFORM pg_advisory_lock(cn_names.lock_purge());
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Removes events with their links and tags and takes them out of topic_usage, in the caller's transaction; nothing of it shows
-- in the log. Leaves out those that somebody has locked. Returns what went.
--
-- Every row is found by a probe of an index. Without the settings the planner reads all links of a topic for each of its
-- events: with 1,700 links a topic 200 events took 350 ms instead of 26.
--
-- Whoever stores events locks some of these rows and then rows of topic_usage, or the other way round. So this never waits for
-- an event, and for topic_usage at the very end and a tenth of a second at most: then it ends with lock_not_available, and the caller repeats it.
CREATE FUNCTION cn_relay.purge_events(ids text[], times timestamptz[], lifetimes text[], OUT events bigint, OUT bytes bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_memoize = off SET enable_material = off SET enable_bitmapscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  used_topics text[];
  used_weeks timestamptz[];
  used_events bigint[];
  used_bytes bigint[];
  newest bigint;
BEGIN
  WITH k AS MATERIALIZED (
    SELECT * FROM unnest(ids, times, lifetimes) AS k (event_id, ingested_at, lifetime)
  ), e AS MATERIALIZED (
    SELECT e.* FROM k CROSS JOIN LATERAL (
      SELECT e.event_id, e.pubkey, e.ingested_at, e.lifetime, e.created_at, e.topics, e.tags, e.raw, e.effective_key,
        e.ingested_seq, e.deleted_at IS NULL AND e.superseded_at IS NULL AND e.expired_at IS NULL AS in_effect,
        cn_relay.event_bytes(e.content, e.tags::text, e.raw) AS bytes
      FROM cn_relay.events e
      WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.lifetime = k.lifetime::"char"
      FOR UPDATE SKIP LOCKED) e
  ), unlinked AS (
    DELETE FROM cn_relay.topic_links l USING (
      SELECT e.event_id, e.ingested_at, e.lifetime, e.created_at, n.topic_no
      FROM e CROSS JOIN LATERAL unnest(e.topics) AS t (topic_id) JOIN cn_relay.topic_numbers n USING (topic_id)) x
    WHERE l.topic_no = x.topic_no AND l.created_at = x.created_at AND l.short_id = cn_relay.short_id(x.event_id)
      AND l.event_id = decode(x.event_id, 'hex') AND l.ingested_at = x.ingested_at AND l.lifetime = x.lifetime
  ), untagged AS (
    DELETE FROM cn_relay.event_tags g USING (
      SELECT e.event_id, e.ingested_at, e.lifetime, e.created_at, k.name, k.value
      FROM e CROSS JOIN LATERAL cn_relay.tag_keys(e.pubkey, e.tags, e.raw IS NOT NULL) k) x
    WHERE g.name = x.name AND g.value = x.value AND g.created_at = x.created_at AND g.event_id = x.event_id
      AND g.ingested_at = x.ingested_at AND g.lifetime = x.lifetime
  ), gone AS (
    DELETE FROM cn_relay.events d USING e
    WHERE d.event_id = e.event_id AND d.ingested_at = e.ingested_at AND d.lifetime = e.lifetime
  ), marked AS (
    UPDATE cn_relay.event_dedupe d SET purged_at = now() FROM e WHERE d.event_id = e.event_id
  ), emptied AS (
    -- The mark of a key stays, without the text.
    UPDATE cn_relay.current_versions c SET event_json = 'null' FROM e
    WHERE c.effective_key = e.effective_key AND c.event_id = e.event_id
  ), used AS (
    SELECT t.topic_id, CASE e.lifetime WHEN 'r' THEN cn_relay.week_of(e.ingested_at) ELSE '-infinity' END AS week,
      count(*) AS events, sum(e.bytes)::bigint AS bytes
    FROM e CROSS JOIN LATERAL unnest(e.topics || ''::text) AS t (topic_id) GROUP BY 1, 2
  )
  SELECT array_agg(u.topic_id), array_agg(u.week), array_agg(u.events), array_agg(u.bytes),
    coalesce(sum(u.events) FILTER (WHERE u.topic_id = ''), 0), coalesce(sum(u.bytes) FILTER (WHERE u.topic_id = ''), 0),
    (SELECT max(e.ingested_seq) FROM e WHERE e.in_effect)
  INTO used_topics, used_weeks, used_events, used_bytes, events, bytes, newest FROM used u;
  IF events = 0 THEN
    RETURN;
  END IF;
  PERFORM FROM cn_relay.topic_usage u
    WHERE (u.topic_id, u.week) IN (SELECT * FROM unnest(used_topics, used_weeks))
    ORDER BY u.topic_id, u.week FOR UPDATE;
  UPDATE cn_relay.topic_usage u SET events = u.events - x.events, bytes = u.bytes - x.bytes
    FROM unnest(used_topics, used_weeks, used_events, used_bytes) AS x (topic_id, week, events, bytes)
    WHERE u.topic_id = x.topic_id AND u.week = x.week;
  -- Nobody keeps in memory what was not in effect.
  IF newest IS NOT NULL THEN
    PERFORM pg_notify(cn_names.channel_purged(), newest::text);
  END IF;
END $$;

-- Moves regular events with their links and tags to where they stay after their week has gone. A reader sees each once. Under
-- the log's lock: whoever stores events must not look for one where it no longer is. Returns how many it moved.
CREATE FUNCTION cn_relay.keep_events(ids text[], times timestamptz[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_memoize = off SET enable_material = off SET enable_bitmapscan = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  moved bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_log());
  WITH k AS MATERIALIZED (
    SELECT DISTINCT * FROM unnest(ids, times) AS k (event_id, ingested_at)
  ), e AS (
    UPDATE cn_relay.events e SET lifetime = 'k' FROM k
    WHERE e.event_id = k.event_id AND e.ingested_at = k.ingested_at AND e.lifetime = 'r'
    RETURNING e.event_id, e.pubkey, e.ingested_at, e.created_at, e.topics, e.tags, e.raw,
      cn_relay.event_bytes(e.content, e.tags::text, e.raw) AS bytes,
      CASE WHEN e.kind = 1059 THEN array_append(cn_relay.recipients_in(e.tags::text), e.pubkey) ELSE ARRAY[e.pubkey] END AS parties
  ), noted AS (
    -- A pass that looks for the events of those who vanish may have been where these stand now.
    UPDATE cn_relay.vanish_requests q SET moved = true
    FROM (SELECT p.pubkey, min(e.created_at) AS oldest FROM e CROSS JOIN LATERAL unnest(e.parties) AS p (pubkey) GROUP BY 1) m
    WHERE q.pass IS NOT NULL AND q.pubkey = m.pubkey AND q.until >= m.oldest
  ), noted_blocks AS (
    UPDATE cn_relay.blocks b SET moved = true
    WHERE b.pass IS NOT NULL AND ((b.kind = 'pubkey' AND b.value IN (SELECT e.pubkey FROM e))
      OR (b.kind = 'topic' AND b.value IN (SELECT t.topic_id FROM e CROSS JOIN LATERAL unnest(e.topics) AS t (topic_id))))
  ), links AS (
    UPDATE cn_relay.topic_links l SET lifetime = 'k' FROM (
      SELECT e.event_id, e.ingested_at, e.created_at, n.topic_no
      FROM e CROSS JOIN LATERAL unnest(e.topics) AS t (topic_id) JOIN cn_relay.topic_numbers n USING (topic_id)) x
    WHERE l.topic_no = x.topic_no AND l.created_at = x.created_at AND l.short_id = cn_relay.short_id(x.event_id)
      AND l.event_id = decode(x.event_id, 'hex') AND l.ingested_at = x.ingested_at AND l.lifetime = 'r'
  ), tags AS (
    UPDATE cn_relay.event_tags g SET lifetime = 'k' FROM (
      SELECT e.event_id, e.ingested_at, e.created_at, k.name, k.value
      FROM e CROSS JOIN LATERAL cn_relay.tag_keys(e.pubkey, e.tags, e.raw IS NOT NULL) k) x
    WHERE g.name = x.name AND g.value = x.value AND g.created_at = x.created_at AND g.event_id = x.event_id
      AND g.ingested_at = x.ingested_at AND g.lifetime = 'r'
  ), used AS (
    SELECT t.topic_id, w.week, w.sign * count(*) AS events, w.sign * sum(e.bytes)::bigint AS bytes
    FROM e CROSS JOIN LATERAL unnest(e.topics || ''::text) AS t (topic_id)
      CROSS JOIN LATERAL (VALUES (cn_relay.week_of(e.ingested_at), -1), ('-infinity', 1)) AS w (week, sign)
    GROUP BY t.topic_id, w.week, w.sign
  ), counted AS (
    INSERT INTO cn_relay.topic_usage AS u (topic_id, week, events, bytes)
    SELECT * FROM used ORDER BY 1, 2
    ON CONFLICT (topic_id, week) DO UPDATE SET events = u.events + excluded.events, bytes = u.bytes + excluded.bytes
  )
  SELECT count(*) INTO moved FROM e;
  RETURN moved;
END $$;

-- Takes the partitions of the week that begins then out of their tables: its events are gone for everybody in the same moment.
-- Returns how many events that were, as topic_usage knows; NULL: there are no such partitions. drop_detached() gives their space back.
--
-- An open transaction that has read events keeps the week from going: then this ends with lock_not_available after at most three
-- tenths of a second, during which readers and writers wait behind it. (DETACH CONCURRENTLY would not make them wait; but it can't
-- run in a function, and the role that a node runs as may not alter the tables.)
CREATE FUNCTION cn_relay.detach_week(week timestamptz) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  parent text;
  found_any boolean := false;
  events bigint;
BEGIN
  IF week <> cn_relay.week_of(week) OR week + interval '7 days' > now() THEN
    RAISE EXCEPTION '% is no week that is over', week USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  -- Whoever makes partitions locks the same tables.
  IF NOT pg_try_advisory_xact_lock(cn_names.lock_relay_partitions()) THEN
    RAISE EXCEPTION 'somebody makes partitions' USING ERRCODE = 'lock_not_available';
  END IF;
  LOCK TABLE ONLY cn_relay.events_regular, ONLY cn_relay.topic_links_regular, ONLY cn_relay.event_tags_regular
    IN ACCESS EXCLUSIVE MODE;
  FOREACH parent IN ARRAY ARRAY['events', 'topic_links', 'event_tags'] LOOP
    IF EXISTS (SELECT FROM pg_inherits i
               WHERE i.inhparent = format('cn_relay.%I', parent || '_regular')::regclass
                 AND i.inhrelid = to_regclass('cn_relay.' || cn_relay.week_table(parent, week))) THEN
      EXECUTE format('ALTER TABLE cn_relay.%I DETACH PARTITION cn_relay.%I', parent || '_regular',
                     cn_relay.week_table(parent, week));
      found_any := true;
    END IF;
  END LOOP;
  IF NOT found_any THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(sum(u.events), 0) INTO events FROM cn_relay.topic_usage u
    WHERE u.topic_id = '' AND u.week = detach_week.week;
  DELETE FROM cn_relay.topic_usage u WHERE u.week = detach_week.week;
  PERFORM pg_notify(cn_names.channel_purged(), '');
  RETURN events;
END $$;

-- Drops the tables that detach_week() has taken out, also those that a process left when it was killed. Nobody reads them, so
-- nobody waits. Returns the bytes that this gave back.
CREATE FUNCTION cn_relay.drop_detached() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  bytes bigint := 0;
  child regclass;
BEGIN
  FOR child IN
    SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = 'cn_relay'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
      AND c.relname ~ '^(events|topic_links|event_tags)_[0-9]{4}_[0-9]{2}_[0-9]{2}$'
  LOOP
    bytes := bytes + pg_total_relation_size(child);
    EXECUTE format('DROP TABLE %s', child);
  END LOOP;
  RETURN bytes;
END $$;

-- Makes topic_usage anew by counting, under the log's lock: nothing is stored meanwhile. Returns how many rows were wrong.
CREATE FUNCTION cn_relay.recount_usage() RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wrong bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(cn_names.lock_purge());
  PERFORM pg_advisory_xact_lock(cn_names.lock_log());
  WITH counted AS MATERIALIZED (
    SELECT t.topic_id, CASE e.lifetime WHEN 'r' THEN cn_relay.week_of(e.ingested_at) ELSE '-infinity' END AS week,
      count(*) AS events, sum(cn_relay.event_bytes(e.content, e.tags::text, e.raw))::bigint AS bytes
    FROM cn_relay.events e CROSS JOIN LATERAL unnest(e.topics || ''::text) AS t (topic_id) GROUP BY 1, 2
  ), differing AS MATERIALIZED (
    SELECT topic_id, week, coalesce(c.events, 0) AS events, coalesce(c.bytes, 0) AS bytes
    FROM counted c FULL JOIN cn_relay.topic_usage u USING (topic_id, week)
    WHERE coalesce(c.events, 0) <> coalesce(u.events, 0) OR coalesce(c.bytes, 0) <> coalesce(u.bytes, 0)
  ), mended AS (
    INSERT INTO cn_relay.topic_usage (topic_id, week, events, bytes) SELECT * FROM differing
    ON CONFLICT (topic_id, week) DO UPDATE SET events = excluded.events, bytes = excluded.bytes
  )
  SELECT count(*) INTO wrong FROM differing;
  RETURN wrong;
END $$;

-- ---------------------------------------------------------------------------------------------- functions: consumers

-- How far every consumer is behind: rows that it has not read, the age of the first of them, and the log's head.
--
-- Gaps don't count. Of the newest 10,000 rows that is exact. Before them the rows of a partition are estimated as the
-- seqs between its first and its last row; so gaps between partitions, as a restore makes them, don't count there either. Reads
-- what the slowest has not read of those 10,000 rows, once for all (8 ms), and the edges of the partitions if one is further behind.
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
    cardinality(n.seqs) - width_bucket(c.last_seq, n.seqs)
      -- Fewer than 10,000 are all there are: what lies before them is a gap.
      + CASE WHEN cardinality(n.seqs) = 10000 AND c.last_seq < n.seqs[1] - 1 THEN (
          SELECT coalesce(sum(greatest(least(e.last, n.seqs[1] - 1) - greatest(c.last_seq, e.first - 1), 0)), 0)::bigint
          FROM edges e) ELSE 0 END,
    coalesce(extract(epoch FROM clock_timestamp() - (
      SELECT o.appended_at FROM cn_relay.events_outbox o WHERE o.seq > c.last_seq ORDER BY o.seq LIMIT 1)), 0)
      ::double precision,
    (SELECT coalesce(max(o.seq), 0) FROM cn_relay.events_outbox o)
  FROM cn_relay.consumer_offsets c, newest n
$$;

-- An offset that goes back is a replay, whoever moved it: what the rows after it have done may be done again, and
-- what was said of them is said anew. A range that the new offset cuts is marked (row_count -1): its first part was
-- read, but how much of it is no longer known. SECURITY DEFINER: a consumer from outside may go back although it can't
-- touch what a replay clears.
CREATE FUNCTION cn_relay.offset_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- A consumer that moves on from below the log's floor has passed over rows that are gone: it needs a rebuild. Retention marks
-- such consumers itself, but waits for nobody who has locked its offset. A consumer that has read nothing yet begins with what
-- is left.
CREATE FUNCTION cn_relay.offset_passes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.last_seq < (SELECT f.dropped_until FROM cn_relay.log_floor f) THEN
    NEW.state := 'needs_rebuild';
  END IF;
  RETURN NEW;
END $$;

-- Keeps the offset of a paused consumer from outside where it is. Nothing here can hold what such a consumer does elsewhere.
CREATE FUNCTION cn_relay.offset_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_user = 'consumer_' || OLD.consumer THEN
    RAISE EXCEPTION 'the operator has paused the consumer %', OLD.consumer
      USING ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'Wait until paused is false; the operator runs: todoke consumers resume ' || OLD.consumer;
  END IF;
  RETURN NEW;
END $$;

-- Makes the role of a consumer, or gives the one that is there a new password. `verifier` is the password as
-- scram-sha-256 stores it. The caller needs CREATEROLE and owns these tables.
CREATE FUNCTION cn_relay.put_consumer_role(name text, verifier text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- Of the 200 connections of an embedded server a consumer gets few; one and a listener are enough.
  connections_max constant integer := 10;
  -- A transaction that is left open keeps vacuum from cleaning up everywhere.
  idle_max constant text := '5min';
  who constant text := 'consumer_' || name;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'todoke_consumers') THEN
    BEGIN
      CREATE ROLE todoke_consumers NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      -- Another database of this cluster has made it meanwhile.
    END;
  END IF;
  IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = who) THEN
    IF NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = 'todoke_consumers'::regrole
                   AND m.member = quote_ident(who)::regrole) THEN
      RAISE EXCEPTION 'the role % is no consumer', who USING ERRCODE = 'duplicate_object';
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', who, verifier);
  ELSE
    EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L CONNECTION LIMIT %s IN ROLE todoke_consumers', who, verifier,
                   connections_max);
  END IF;
  EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', who, idle_max);
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = "$user", public, cn_relay', who, current_database());
  IF NOT has_database_privilege(who, current_database(), 'CONNECT') THEN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), who);
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA cn_relay TO %I', who);
  -- Partitions are read through these; they need no grants of their own.
  EXECUTE format('GRANT SELECT ON cn_relay.events_outbox, cn_relay.events, cn_relay.effective_events TO %I', who);
  EXECUTE format('GRANT SELECT, INSERT (consumer, last_seq, updated_at), UPDATE (last_seq, updated_at) '
                 'ON cn_relay.consumer_offsets TO %I', who);
END $$;

-- Drops the role of a consumer, its sessions first. What it owns in this database goes with it when `with_owned` says
-- so; otherwise a role that owns anything is refused. The caller needs CREATEROLE.
CREATE FUNCTION cn_relay.drop_consumer_role(name text, with_owned boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  who constant text := 'consumer_' || name;
  owned text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = who) THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
                 WHERE r.rolname = 'todoke_consumers' AND m.member = quote_ident(who)::regrole) THEN
    RAISE EXCEPTION 'the role % is no consumer', who USING ERRCODE = 'duplicate_object';
  END IF;
  SELECT string_agg(pg_describe_object(d.classid, d.objid, d.objsubid), ', ') INTO owned
  FROM (SELECT * FROM pg_shdepend d
        WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = quote_ident(who)::regrole AND d.deptype = 'o'
          AND d.dbid = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
        ORDER BY d.classid, d.objid LIMIT 10) d;
  IF owned IS NOT NULL AND NOT with_owned THEN
    RAISE EXCEPTION 'the role % owns %', who, owned USING ERRCODE = 'dependent_objects_still_exist';
  END IF;
  IF NOT pg_has_role(current_user, who, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', who, current_user);
  END IF;
  EXECUTE format('ALTER ROLE %I NOLOGIN', who);
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.usename = who;
  EXECUTE format('DROP OWNED BY %I', who);
  EXECUTE format('DROP ROLE %I', who);
END $$;

-- ---------------------------------------------------------------------------------------------- triggers

CREATE TRIGGER checks BEFORE INSERT OR UPDATE ON cn_relay.node_subscriptions
  FOR EACH ROW EXECUTE FUNCTION cn_relay.node_subscription_changes();
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON cn_relay.node_subscriptions
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.notify_topics();
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON cn_relay.gossip_peers
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.notify_gossip();

CREATE TRIGGER notifies AFTER INSERT OR DELETE OR UPDATE OF kind, value, until ON cn_relay.blocks
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.notify_blocks();
CREATE TRIGGER audited AFTER INSERT OR DELETE OR UPDATE OF kind, value, reason, until, erase_at ON cn_relay.blocks
  FOR EACH ROW EXECUTE FUNCTION cn_relay.note_block_change();
CREATE TRIGGER keep_history BEFORE TRUNCATE ON cn_relay.blocks
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();

CREATE TRIGGER commit_order BEFORE INSERT ON cn_relay.events_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION cn_relay.lock_log_trigger();

CREATE TRIGGER held BEFORE UPDATE OF last_seq ON cn_relay.consumer_offsets FOR EACH ROW
  WHEN (OLD.paused AND NEW.last_seq <> OLD.last_seq) EXECUTE FUNCTION cn_relay.offset_held();
CREATE TRIGGER passes BEFORE UPDATE OF last_seq ON cn_relay.consumer_offsets FOR EACH ROW
  WHEN (NEW.last_seq > OLD.last_seq AND OLD.last_seq > 0 AND OLD.state = 'live' AND NEW.state = 'live')
  EXECUTE FUNCTION cn_relay.offset_passes();
CREATE TRIGGER replays AFTER UPDATE OF last_seq ON cn_relay.consumer_offsets FOR EACH ROW
  WHEN (NEW.last_seq < OLD.last_seq) EXECUTE FUNCTION cn_relay.offset_moved();

-- ---------------------------------------------------------------------------------------------- first rows

INSERT INTO cn_relay.node_subscriptions (topic_id, enabled, pinned) VALUES ('kukuri:global', true, true);
INSERT INTO cn_relay.log_floor DEFAULT VALUES;
INSERT INTO cn_relay.erase_pass DEFAULT VALUES;
SELECT cn_relay.ensure_partitions(now() + interval '3 days');

-- ---------------------------------------------------------------------------------------------- grants

-- A consumer from outside sees its own offset. Roles outside the group see every row, as if there was no policy. Postgres binds
-- the policy's expressions here, so no search_path of a reader changes what they mean.
ALTER TABLE cn_relay.consumer_offsets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_row ON cn_relay.consumer_offsets USING (
  'consumer_' || consumer = current_user
  OR NOT coalesce(
    pg_has_role(current_user, (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'todoke_consumers'), 'MEMBER'),
    false));

-- Every role may call a new function; consumers from outside may call none that writes or that shows other consumers.
REVOKE EXECUTE ON FUNCTION cn_relay.add_partition(text, text, text, text, text), cn_relay.ensure_partitions(timestamptz),
  cn_relay.drop_log_partition(bigint), cn_relay.ensure_week(timestamptz), cn_relay.ensure_open_indexes(),
  cn_relay.detach_week(timestamptz), cn_relay.drop_detached(), cn_relay.purge_events(text[], timestamptz[], text[]),
  cn_relay.keep_events(text[], timestamptz[]), cn_relay.topic_days(text[], text, integer), cn_relay.longest_days(integer),
  cn_relay.recount_usage(), cn_relay.shortest_days(text[], integer), cn_relay.take_purge_lock(integer),
  cn_relay.event_due(text, integer, text[], timestamptz, timestamptz, integer, integer, integer),
  cn_relay.log_place(), cn_relay.note_log_place(bigint), cn_relay.move_log(bigint), cn_relay.check_log(bigint, boolean),
  cn_relay.lock_log(bigint), cn_relay.lock_log_trigger(), cn_relay.note_moved(text, integer, bigint, json, text[]), cn_relay.retire(text, timestamptz, "char", text),
  cn_relay.unlink(text, timestamptz, "char", bigint, text, json, text[], bytea), cn_relay.erase(text, timestamptz, "char"),
  cn_relay.topic_no(text), cn_relay.block_verdict(text, text, text[]), cn_relay.note_block_change(), cn_relay.backlogs(), cn_relay.offset_moved(), cn_relay.offset_passes(), cn_relay.offset_held(),
  cn_relay.put_consumer_role(text, text), cn_relay.drop_consumer_role(text, boolean) FROM PUBLIC;
