-- The schema cn_user: people who use the node, by their public key. What they agreed to, which topics they asked for and
-- may use, what they have used up, and what they want to know or have deleted about themselves.
--
-- And cn_bootstrap: what the node has told others about itself.
--
-- The number of a topic's subscribers (cn_relay.node_subscriptions.ref_count) follows from topic_subscriptions by a trigger, so
-- that no way of changing a subscription can get it wrong.
CREATE SCHEMA cn_user;
CREATE SCHEMA cn_bootstrap;

CREATE FUNCTION cn_names.lock_topics() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215474;
COMMENT ON FUNCTION cn_names.lock_topics() IS
  'Whoever enables a further topic for a subscriber, so that the node carries no more than it may. Transaction';
CREATE FUNCTION cn_names.lock_bootstrap() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 128021775215475;
COMMENT ON FUNCTION cn_names.lock_bootstrap() IS
  'The process that publishes what the node says of itself. Session';
CREATE FUNCTION cn_names.channel_rights() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_user_rights';
COMMENT ON FUNCTION cn_names.channel_rights() IS
  'What somebody may do has changed: a public key, or nothing: of everybody';
CREATE FUNCTION cn_names.channel_requests() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_user_requests';
COMMENT ON FUNCTION cn_names.channel_requests() IS
  'Subscription requests have changed';
CREATE FUNCTION cn_names.channel_keys() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'cn_bootstrap_keys';
COMMENT ON FUNCTION cn_names.channel_keys() IS
  'The keys that the node signs with have changed';

-- ---------------------------------------------------------------------------------------------- plans and accounts

CREATE TABLE cn_user.plans (
  plan_id text COLLATE "C" PRIMARY KEY CHECK (plan_id ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
  is_default boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_user.plans IS 'What people may use: an account has one plan; new accounts get the default one.';
CREATE UNIQUE INDEX plans_default ON cn_user.plans (is_default) WHERE is_default;

CREATE TABLE cn_user.plan_limits (
  plan_id text COLLATE "C" NOT NULL REFERENCES cn_user.plans ON DELETE CASCADE,
  metric text COLLATE "C" NOT NULL CHECK (metric IN
    ('index.search_requests', 'index.trending_requests', 'trust.requests', 'moderation.report_submits', 'max_topics')),
  value bigint NOT NULL CHECK (value BETWEEN 0 AND 1000000000),
  PRIMARY KEY (plan_id, metric)
);
COMMENT ON TABLE cn_user.plan_limits IS 'How much of each a plan allows; a metric without a row has no limit.';
COMMENT ON COLUMN cn_user.plan_limits.value IS 'A day, by UTC; of max_topics: at once.';

INSERT INTO cn_user.plans (plan_id, name, is_default) VALUES ('free', 'Free', true);
INSERT INTO cn_user.plan_limits (plan_id, metric, value) VALUES
  ('free', 'index.search_requests', 100),
  ('free', 'index.trending_requests', 100),
  ('free', 'trust.requests', 100),
  ('free', 'moderation.report_submits', 20),
  ('free', 'max_topics', 50);

CREATE TABLE cn_user.accounts (
  pubkey text COLLATE "C" PRIMARY KEY CHECK (pubkey ~ '^[0-9a-f]{64}$'),
  status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled', 'deleted')),
  plan_id text COLLATE "C" REFERENCES cn_user.plans,
  note text CHECK (octet_length(note) <= 1024),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_user.accounts IS
  'Who has proven a key to the User API or was given a status. A key without a row is nobody yet, and active.';
COMMENT ON COLUMN cn_user.accounts.plan_id IS 'NULL: the default plan.';
CREATE INDEX accounts_created ON cn_user.accounts (created_at, pubkey);

CREATE TABLE cn_user.auth_challenges (
  challenge text COLLATE "C" PRIMARY KEY CHECK (octet_length(challenge) BETWEEN 16 AND 128),
  pubkey text COLLATE "C" NOT NULL CHECK (pubkey ~ '^[0-9a-f]{64}$'),
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE cn_user.auth_challenges IS
  'What a client has to sign to log in; the row goes with its first use. Purged when it has expired.';
CREATE INDEX auth_challenges_pubkey ON cn_user.auth_challenges (pubkey, expires_at);
CREATE INDEX auth_challenges_expiry ON cn_user.auth_challenges (expires_at);

-- ---------------------------------------------------------------------------------------------- policies and consent

CREATE TABLE cn_admin.policies (
  type text COLLATE "C" NOT NULL CHECK (type IN ('terms', 'privacy')),
  version text COLLATE "C" NOT NULL CHECK (version ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  locale text COLLATE "C" NOT NULL DEFAULT 'en' CHECK (locale ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$'),
  title text NOT NULL CHECK (octet_length(title) BETWEEN 1 AND 400),
  content text NOT NULL CHECK (octet_length(content) BETWEEN 1 AND 262144),
  status text COLLATE "C" NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published')),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  published_at timestamptz,
  PRIMARY KEY (type, version, locale),
  CHECK ((status = 'published') = (published_at IS NOT NULL))
);
COMMENT ON TABLE cn_admin.policies IS
  'Terms and privacy statements, a row for each language of a version. A published row never changes.';

CREATE TABLE cn_admin.current_policies (
  type text COLLATE "C" PRIMARY KEY CHECK (type IN ('terms', 'privacy')),
  version text COLLATE "C" NOT NULL,
  effective_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_admin.current_policies IS
  'The version of each type that people must have agreed to. No row: nothing of that type is asked for.';

CREATE TABLE cn_user.policy_consents (
  pubkey text COLLATE "C" NOT NULL CHECK (pubkey ~ '^[0-9a-f]{64}$'),
  type text COLLATE "C" NOT NULL,
  version text COLLATE "C" NOT NULL,
  consented_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pubkey, type, version)
);
COMMENT ON TABLE cn_user.policy_consents IS 'Who agreed to which version, and when.';

-- Refuses changes of what is published, and a policy that becomes current without being published.
CREATE FUNCTION cn_admin.keep_published() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'published' THEN
    RAISE EXCEPTION '% % (%) is published: it can not be changed any more', OLD.type, OLD.version, OLD.locale
      USING ERRCODE = 'check_violation';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.updated_at := now();
  RETURN NEW;
END $$;
CREATE TRIGGER keep_published BEFORE UPDATE OR DELETE ON cn_admin.policies
  FOR EACH ROW EXECUTE FUNCTION cn_admin.keep_published();

CREATE FUNCTION cn_admin.check_current_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM cn_admin.policies p
                 WHERE p.type = NEW.type AND p.version = NEW.version AND p.status = 'published') THEN
    RAISE EXCEPTION '% % is not published', NEW.type, NEW.version USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER check_current_policy BEFORE INSERT OR UPDATE ON cn_admin.current_policies
  FOR EACH ROW EXECUTE FUNCTION cn_admin.check_current_policy();

-- The types and versions that `who` has not agreed to and must.
CREATE FUNCTION cn_user.missing_consents(who text) RETURNS TABLE (type text, version text) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT c.type, c.version FROM cn_admin.current_policies c
  WHERE c.effective_at <= now()
    AND NOT EXISTS (SELECT FROM cn_user.policy_consents p
                    WHERE p.pubkey = who AND p.type = c.type AND p.version = c.version)
  ORDER BY c.type;
END;

-- ---------------------------------------------------------------------------------------------- topics

CREATE TABLE cn_user.topic_subscription_requests (
  request_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  requester_pubkey text COLLATE "C" NOT NULL CHECK (requester_pubkey ~ '^[0-9a-f]{64}$'),
  topic_id text COLLATE "C" NOT NULL CHECK (octet_length(topic_id) BETWEEN 1 AND 1024),
  topic_name text CHECK (octet_length(topic_name) <= 1024),
  requested_services text[] NOT NULL DEFAULT '{}'
    CHECK (requested_services <@ ARRAY['index', 'moderation', 'trust'] AND cardinality(requested_services) <= 3),
  status text COLLATE "C" NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'approved', 'rejected', 'active', 'cancelled')),
  review_note text CHECK (octet_length(review_note) <= 2048),
  reviewed_by text,
  created_at timestamptz NOT NULL DEFAULT now(),
  reviewed_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_user.topic_subscription_requests IS
  'What people asked the node to carry: pending, then approved and, when the node takes the topic in, active; or rejected, or cancelled by its author.';
-- Of one person and topic at most one request is open.
CREATE UNIQUE INDEX requests_open ON cn_user.topic_subscription_requests (requester_pubkey, topic_id)
  WHERE status IN ('pending', 'approved');
CREATE INDEX requests_of ON cn_user.topic_subscription_requests (requester_pubkey, created_at DESC, request_id);
CREATE INDEX requests_by_status ON cn_user.topic_subscription_requests (status, created_at, request_id);
CREATE INDEX requests_by_time ON cn_user.topic_subscription_requests (created_at, request_id);
CREATE INDEX requests_approved ON cn_user.topic_subscription_requests (topic_id) WHERE status = 'approved';

CREATE TABLE cn_user.topic_subscriptions (
  topic_id text COLLATE "C" NOT NULL CHECK (octet_length(topic_id) BETWEEN 1 AND 1024),
  subscriber_pubkey text COLLATE "C" NOT NULL CHECK (subscriber_pubkey ~ '^[0-9a-f]{64}$'),
  subscription_id uuid NOT NULL DEFAULT gen_random_uuid(),
  plan_id text COLLATE "C" REFERENCES cn_user.plans,
  services text[] NOT NULL DEFAULT '{}' CHECK (services <@ ARRAY['index', 'moderation', 'trust']),
  status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended')),
  started_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (subscriber_pubkey, topic_id),
  CHECK ((status = 'ended') = (ended_at IS NOT NULL))
);
COMMENT ON TABLE cn_user.topic_subscriptions IS
  'Who may use which results of a topic. An ended one can begin again.';
COMMENT ON COLUMN cn_user.topic_subscriptions.plan_id IS 'The plan under which it began.';
COMMENT ON COLUMN cn_user.topic_subscriptions.services IS 'The results that it opens.';
CREATE INDEX topic_subscriptions_topic ON cn_user.topic_subscriptions (topic_id, subscriber_pubkey) WHERE status = 'active';

-- Keeps ref_count: a row counts while it is active. The change is made under the lock of the topic's row, so any number of
-- transactions add up. A topic that the node does not know is made known; the trigger of node_subscriptions enables it with its
-- first subscriber and disables it with its last, unless the operator has pinned it.
CREATE FUNCTION cn_user.count_subscribers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was text := CASE WHEN TG_OP <> 'INSERT' AND OLD.status = 'active' THEN OLD.topic_id END;
  becomes text := CASE WHEN TG_OP <> 'DELETE' AND NEW.status = 'active' THEN NEW.topic_id END;
BEGIN
  IF was IS NOT DISTINCT FROM becomes THEN
    RETURN NULL;
  END IF;
  IF was IS NOT NULL THEN
    UPDATE cn_relay.node_subscriptions SET ref_count = ref_count - 1 WHERE topic_id = was;
  END IF;
  IF becomes IS NOT NULL THEN
    INSERT INTO cn_relay.node_subscriptions (topic_id, enabled, ref_count) VALUES (becomes, true, 1)
    ON CONFLICT (topic_id) DO UPDATE SET ref_count = cn_relay.node_subscriptions.ref_count + 1;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_subscribers AFTER INSERT OR UPDATE OF status, topic_id OR DELETE ON cn_user.topic_subscriptions
  FOR EACH ROW EXECUTE FUNCTION cn_user.count_subscribers();
CREATE TRIGGER keep_subscriptions BEFORE TRUNCATE ON cn_user.topic_subscriptions
  FOR EACH STATEMENT EXECUTE FUNCTION cn_admin.keep_history();

-- Topics whose ref_count is not the number of their active subscriptions: none, unless somebody has set it by hand.
CREATE VIEW cn_user.wrong_ref_counts AS
  SELECT n.topic_id, n.ref_count, count(s.subscriber_pubkey)::integer AS subscribers
  FROM cn_relay.node_subscriptions n
  LEFT JOIN cn_user.topic_subscriptions s ON s.topic_id = n.topic_id AND s.status = 'active'
  GROUP BY n.topic_id, n.ref_count
  HAVING n.ref_count <> count(s.subscriber_pubkey);
COMMENT ON VIEW cn_user.wrong_ref_counts IS 'Topics whose ref_count somebody has set by hand to something wrong.';

CREATE TABLE cn_user.invites (
  code_hash text COLLATE "C" PRIMARY KEY CHECK (code_hash ~ '^[0-9a-f]{64}$'),
  note text CHECK (octet_length(note) <= 1024),
  uses_left integer NOT NULL CHECK (uses_left BETWEEN 0 AND 1000000),
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL DEFAULT cn_admin.actor()
);
COMMENT ON TABLE cn_user.invites IS
  'Codes that let a request for a topic be approved without an operator, where auto-approval is on. Kept as hashes.';

-- ---------------------------------------------------------------------------------------------- quotas

CREATE TABLE cn_user.usage_counters_daily (
  pubkey text COLLATE "C" NOT NULL,
  metric text COLLATE "C" NOT NULL,
  day date NOT NULL,
  used bigint NOT NULL CHECK (used >= 0),
  PRIMARY KEY (pubkey, metric, day)
);
COMMENT ON TABLE cn_user.usage_counters_daily IS 'What each key has used on a day (UTC). Kept for 92 days.';
CREATE INDEX usage_counters_day ON cn_user.usage_counters_daily (day);

CREATE TABLE cn_user.usage_events (
  pubkey text COLLATE "C" NOT NULL,
  metric text COLLATE "C" NOT NULL,
  day date NOT NULL,
  request_key text COLLATE "C" NOT NULL CHECK (octet_length(request_key) = 64),
  PRIMARY KEY (pubkey, metric, day, request_key)
);
COMMENT ON TABLE cn_user.usage_events IS
  'Requests that were counted: a repeated one with the same id and the same content is not counted again. Kept for two days.';
CREATE INDEX usage_events_day ON cn_user.usage_events (day);

-- The plan of a key.
CREATE FUNCTION cn_user.plan_of(who text) RETURNS text LANGUAGE sql STABLE
RETURN coalesce((SELECT a.plan_id FROM cn_user.accounts a WHERE a.pubkey = who),
                (SELECT p.plan_id FROM cn_user.plans p WHERE p.is_default));

-- What the plan of a key allows of a metric; NULL: no limit.
CREATE FUNCTION cn_user.limit_of(who text, the_metric text) RETURNS bigint LANGUAGE sql STABLE
RETURN (SELECT l.value FROM cn_user.plan_limits l WHERE l.plan_id = cn_user.plan_of(who) AND l.metric = the_metric);

-- Counts one use of a metric today, once for each request_key, unless the plan allows no more. All callers of one key and metric
-- wait for each other here, so the limit is never exceeded.
CREATE FUNCTION cn_user.spend(who text, the_metric text, the_request text, OUT allowed boolean, OUT current bigint,
  OUT most bigint, OUT reset_at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
  today constant date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
  most := cn_user.limit_of(who, the_metric);
  reset_at := (today + 1)::timestamp AT TIME ZONE 'UTC';
  INSERT INTO cn_user.usage_counters_daily AS c (pubkey, metric, day, used) VALUES (who, the_metric, today, 0)
  ON CONFLICT (pubkey, metric, day) DO UPDATE SET used = c.used
  RETURNING c.used INTO current;
  IF EXISTS (SELECT FROM cn_user.usage_events e
             WHERE e.pubkey = who AND e.metric = the_metric AND e.day = today AND e.request_key = the_request) THEN
    allowed := true;
    RETURN;
  END IF;
  allowed := most IS NULL OR current < most;
  IF NOT allowed THEN
    RETURN;
  END IF;
  INSERT INTO cn_user.usage_events (pubkey, metric, day, request_key) VALUES (who, the_metric, today, the_request);
  UPDATE cn_user.usage_counters_daily c SET used = c.used + 1
  WHERE c.pubkey = who AND c.metric = the_metric AND c.day = today
  RETURNING c.used INTO current;
END $$;

-- ---------------------------------------------------------------------------------------------- the flow of a subscription

-- How a topic is asked for, approved, used and given up. The User API, the Admin API and the commands call these functions, and
-- nothing else changes the two tables.
--
--              approve_request
--   pending ---------------------> approved ---------------> active      of a request; active: the node takes the topic in
--      |  reject_request              |  mark_ingested, or at once where it takes the topic in already
--      +--------------> rejected      |  end_subscription
--      |  cancel_request              v
--      +--------------------------> cancelled
--
--              pause               end_subscription
--   active <---------> paused ---------------------> ended               of a subscription; another approval makes it active
--              resume
--
-- A refusal is a value: `problem` has its code and nothing has changed; NULL: it worked.
--
--   NOT_FOUND                                    there is none, or it is somebody else's; an ended subscription
--   ACCOUNT_DISABLED                             the account is disabled or deleted
--   TOPIC_BLOCKED                                the operator keeps the topic out (cn_relay.blocks)
--   ALREADY_SUBSCRIBED                           the subscription that is there opens all of the services
--   REQUEST_EXISTS                               a request for the topic is open: `request_id` and `status` are its
--   PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED   `most` requests are pending
--   QUOTA_EXCEEDED                               the plan allows `most` topics, and that many (`current`) are not ended
--   NODE_TOPIC_LIMIT_REACHED                     the node carries as many topics as it may
--   INVALID_INVITE                               unknown, expired or used up
--   ALREADY_DECIDED                              the request is not pending: `status` says what it is
--
-- Locks, in this order: the account, the request, an invite, the topic of the node, lock_topics, the subscription. So whatever
-- concerns one person happens one after the other, and nobody waits for each other in a circle.

-- Takes the lock of an account, making it if there is none, and returns its status.
CREATE FUNCTION cn_user.lock_account(who text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found_status text;
BEGIN
  INSERT INTO cn_user.accounts (pubkey) VALUES (who) ON CONFLICT (pubkey) DO NOTHING;
  SELECT a.status INTO found_status FROM cn_user.accounts a WHERE a.pubkey = who FOR NO KEY UPDATE;
  RETURN found_status;
END $$;

CREATE FUNCTION cn_user.is_topic_blocked(the_topic text) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM cn_relay.blocks b
               WHERE b.kind = 'topic' AND b.value = the_topic AND (b.until IS NULL OR b.until > now()));

-- What a plan counts as topics: subscriptions that are not ended. `current` leaves the topic itself out.
CREATE FUNCTION cn_user.topics_of(who text, the_topic text, OUT current bigint, OUT most bigint) LANGUAGE sql STABLE
RETURN ROW ((SELECT count(*) FROM cn_user.topic_subscriptions s
             WHERE s.subscriber_pubkey = who AND s.status <> 'ended' AND s.topic_id <> the_topic),
            cn_user.limit_of(who, 'max_topics'));

-- Whether the node takes the topic in, and whether it may begin to: `topics_max` are the most that it carries. Holds the topic's
-- row and, when the topic would be a further one, a lock, so that no two transactions take the same room.
CREATE FUNCTION cn_user.reserve_topic(the_topic text, topics_max integer, OUT is_ingested boolean, OUT has_room boolean)
LANGUAGE plpgsql AS $$
DECLARE
  topic record;
BEGIN
  SELECT n.enabled, n.pinned INTO topic FROM cn_relay.node_subscriptions n WHERE n.topic_id = the_topic FOR NO KEY UPDATE;
  is_ingested := coalesce(topic.enabled, false);
  has_room := true;
  IF is_ingested OR topic.pinned THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(cn_names.lock_topics());
  has_room := (SELECT count(*) FROM cn_relay.node_subscriptions n WHERE n.enabled AND n.topic_id <> the_topic) < topics_max;
END $$;

-- Approves a pending request: NOT_FOUND, ALREADY_DECIDED, ACCOUNT_DISABLED, TOPIC_BLOCKED, QUOTA_EXCEEDED,
-- NODE_TOPIC_LIMIT_REACHED.
CREATE FUNCTION cn_user.approve_request(the_request uuid, note text, reviewer text, topics_max integer,
  OUT problem text, OUT status text, OUT topic_id text, OUT requester_pubkey text, OUT current bigint, OUT most bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  account_status text;
  asked record;
  room record;
BEGIN
  SELECT r.requester_pubkey INTO requester_pubkey FROM cn_user.topic_subscription_requests r WHERE r.request_id = the_request;
  IF requester_pubkey IS NULL THEN
    problem := 'NOT_FOUND';
    RETURN;
  END IF;
  account_status := cn_user.lock_account(requester_pubkey);
  SELECT r.status, r.topic_id, r.topic_name, r.requested_services INTO asked
  FROM cn_user.topic_subscription_requests r WHERE r.request_id = the_request FOR UPDATE;
  status := asked.status;
  topic_id := asked.topic_id;
  problem := CASE WHEN status IS NULL THEN 'NOT_FOUND'
                  WHEN status <> 'pending' THEN 'ALREADY_DECIDED'
                  WHEN account_status <> 'active' THEN 'ACCOUNT_DISABLED'
                  WHEN cn_user.is_topic_blocked(topic_id) THEN 'TOPIC_BLOCKED' END;
  IF problem IS NOT NULL THEN
    RETURN;
  END IF;
  SELECT t.current, t.most INTO current, most FROM cn_user.topics_of(requester_pubkey, topic_id) t;
  IF current >= most THEN
    problem := 'QUOTA_EXCEEDED';
    RETURN;
  END IF;
  room := cn_user.reserve_topic(topic_id, topics_max);
  IF NOT room.has_room THEN
    problem := 'NODE_TOPIC_LIMIT_REACHED';
    RETURN;
  END IF;
  status := CASE WHEN room.is_ingested THEN 'active' ELSE 'approved' END;
  UPDATE cn_user.topic_subscription_requests r
  SET status = status, review_note = note, reviewed_by = reviewer, reviewed_at = now(), updated_at = now()
  WHERE r.request_id = the_request;
  INSERT INTO cn_user.topic_subscriptions AS s (topic_id, subscriber_pubkey, plan_id, services)
  VALUES (topic_id, requester_pubkey, cn_user.plan_of(requester_pubkey), asked.requested_services)
  ON CONFLICT ON CONSTRAINT topic_subscriptions_pkey DO UPDATE SET
    status = 'active', ended_at = NULL, updated_at = now(),
    services = CASE WHEN s.status = 'ended' THEN EXCLUDED.services
                    ELSE ARRAY(SELECT DISTINCT w FROM unnest(s.services || EXCLUDED.services) AS w ORDER BY w) END,
    plan_id = CASE WHEN s.status = 'ended' THEN EXCLUDED.plan_id ELSE s.plan_id END,
    started_at = CASE WHEN s.status = 'ended' THEN now() ELSE s.started_at END,
    subscription_id = CASE WHEN s.status = 'ended' THEN gen_random_uuid() ELSE s.subscription_id END;
  UPDATE cn_relay.node_subscriptions n SET name = asked.topic_name
  WHERE n.topic_id = topic_id AND n.name IS NULL AND asked.topic_name IS NOT NULL;
END $$;

-- Rejects a pending request: NOT_FOUND, ALREADY_DECIDED.
CREATE FUNCTION cn_user.reject_request(the_request uuid, note text, reviewer text,
  OUT problem text, OUT status text, OUT topic_id text, OUT requester_pubkey text) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  SELECT r.status, r.topic_id, r.requester_pubkey INTO status, topic_id, requester_pubkey
  FROM cn_user.topic_subscription_requests r WHERE r.request_id = the_request FOR UPDATE;
  problem := CASE WHEN status IS NULL THEN 'NOT_FOUND' WHEN status <> 'pending' THEN 'ALREADY_DECIDED' END;
  IF problem IS NOT NULL THEN
    RETURN;
  END IF;
  status := 'rejected';
  UPDATE cn_user.topic_subscription_requests r
  SET status = status, review_note = note, reviewed_by = reviewer, reviewed_at = now(), updated_at = now()
  WHERE r.request_id = the_request;
END $$;

-- Takes back a pending request of `who`: NOT_FOUND, ALREADY_DECIDED.
CREATE FUNCTION cn_user.cancel_request(who text, the_request uuid, OUT problem text, OUT status text, OUT topic_id text)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  SELECT r.status, r.topic_id INTO status, topic_id
  FROM cn_user.topic_subscription_requests r WHERE r.request_id = the_request AND r.requester_pubkey = who FOR UPDATE;
  problem := CASE WHEN status IS NULL THEN 'NOT_FOUND' WHEN status <> 'pending' THEN 'ALREADY_DECIDED' END;
  IF problem IS NOT NULL THEN
    RETURN;
  END IF;
  status := 'cancelled';
  UPDATE cn_user.topic_subscription_requests r SET status = status, updated_at = now() WHERE r.request_id = the_request;
END $$;

-- Asks for a topic: ACCOUNT_DISABLED, TOPIC_BLOCKED, ALREADY_SUBSCRIBED, REQUEST_EXISTS, QUOTA_EXCEEDED,
-- PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED, INVALID_INVITE. With auto_approve the request is approved at once: `plan`, when
-- an operator has given the account a plan; `invite`, when the invite whose hash is given has uses left. It stays pending where
-- approve_request would refuse it.
CREATE FUNCTION cn_user.request_topic(who text, the_topic text, the_name text, services text[], pending_max integer,
  topics_max integer, auto_approve text, invite_hash text,
  OUT problem text, OUT request_id uuid, OUT status text, OUT current bigint, OUT most bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  account_status text := cn_user.lock_account(who);
  wanted constant text[] := ARRAY(SELECT DISTINCT w FROM unnest(services) AS w ORDER BY w);
  approval record;
BEGIN
  problem := CASE
    WHEN account_status <> 'active' THEN 'ACCOUNT_DISABLED'
    WHEN cn_user.is_topic_blocked(the_topic) THEN 'TOPIC_BLOCKED'
    WHEN EXISTS (SELECT FROM cn_user.topic_subscriptions s
                 WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic AND s.status <> 'ended'
                   AND wanted <@ s.services) THEN 'ALREADY_SUBSCRIBED' END;
  IF problem IS NOT NULL THEN
    RETURN;
  END IF;
  SELECT r.request_id, r.status INTO request_id, status FROM cn_user.topic_subscription_requests r
  WHERE r.requester_pubkey = who AND r.topic_id = the_topic AND r.status IN ('pending', 'approved');
  IF request_id IS NOT NULL THEN
    problem := 'REQUEST_EXISTS';
    RETURN;
  END IF;
  SELECT t.current, t.most INTO current, most FROM cn_user.topics_of(who, the_topic) t;
  IF current >= most THEN
    problem := 'QUOTA_EXCEEDED';
    RETURN;
  END IF;
  current := (SELECT count(*) FROM cn_user.topic_subscription_requests r
              WHERE r.requester_pubkey = who AND r.status = 'pending');
  most := pending_max;
  IF current >= most THEN
    problem := 'PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED';
    RETURN;
  END IF;
  IF auto_approve = 'invite' AND invite_hash IS NOT NULL THEN
    PERFORM FROM cn_user.invites i
    WHERE i.code_hash = invite_hash AND i.uses_left > 0 AND i.expires_at > now() FOR UPDATE;
    IF NOT FOUND THEN
      problem := 'INVALID_INVITE';
      RETURN;
    END IF;
  END IF;
  status := 'pending';
  INSERT INTO cn_user.topic_subscription_requests AS r (requester_pubkey, topic_id, topic_name, requested_services)
  VALUES (who, the_topic, the_name, wanted) RETURNING r.request_id INTO request_id;
  IF (auto_approve = 'invite' AND invite_hash IS NOT NULL)
     OR (auto_approve = 'plan' AND EXISTS (SELECT FROM cn_user.accounts a WHERE a.pubkey = who AND a.plan_id IS NOT NULL)) THEN
    approval := cn_user.approve_request(request_id, NULL, 'auto:' || auto_approve, topics_max);
    IF approval.problem IS NULL THEN
      status := approval.status;
      UPDATE cn_user.invites i SET uses_left = i.uses_left - 1 WHERE auto_approve = 'invite' AND i.code_hash = invite_hash;
    END IF;
  END IF;
END $$;

-- Pauses a subscription, or leaves it paused: NOT_FOUND.
CREATE FUNCTION cn_user.pause_subscription(who text, the_topic text, OUT problem text, OUT status text) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
  PERFORM cn_user.lock_account(who);
  UPDATE cn_user.topic_subscriptions s SET status = 'paused', updated_at = now()
  WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic AND s.status = 'active';
  SELECT s.status INTO status FROM cn_user.topic_subscriptions s
  WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic AND s.status <> 'ended';
  problem := CASE WHEN status IS NULL THEN 'NOT_FOUND' END;
END $$;

-- Goes on with a paused subscription, or leaves it active: NOT_FOUND, ACCOUNT_DISABLED, TOPIC_BLOCKED,
-- NODE_TOPIC_LIMIT_REACHED.
CREATE FUNCTION cn_user.resume_subscription(who text, the_topic text, topics_max integer, OUT problem text, OUT status text)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  account_status text := cn_user.lock_account(who);
  room record;
BEGIN
  SELECT s.status INTO status FROM cn_user.topic_subscriptions s
  WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic AND s.status <> 'ended';
  problem := CASE WHEN status IS NULL THEN 'NOT_FOUND'
                  WHEN account_status <> 'active' THEN 'ACCOUNT_DISABLED'
                  WHEN cn_user.is_topic_blocked(the_topic) THEN 'TOPIC_BLOCKED' END;
  IF problem IS NOT NULL OR status = 'active' THEN
    RETURN;
  END IF;
  room := cn_user.reserve_topic(the_topic, topics_max);
  IF NOT room.has_room THEN
    problem := 'NODE_TOPIC_LIMIT_REACHED';
    RETURN;
  END IF;
  status := 'active';
  UPDATE cn_user.topic_subscriptions s SET status = status, updated_at = now()
  WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic;
END $$;

-- Ends a subscription, and the request whose topic the node does not take in yet: NOT_FOUND.
CREATE FUNCTION cn_user.end_subscription(who text, the_topic text, OUT problem text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cn_user.lock_account(who);
  UPDATE cn_user.topic_subscription_requests r SET status = 'cancelled', updated_at = now()
  WHERE r.requester_pubkey = who AND r.topic_id = the_topic AND r.status = 'approved';
  UPDATE cn_user.topic_subscriptions s SET status = 'ended', ended_at = now(), updated_at = now()
  WHERE s.subscriber_pubkey = who AND s.topic_id = the_topic AND s.status <> 'ended';
  problem := CASE WHEN NOT FOUND THEN 'NOT_FOUND' END;
END $$;

-- The node takes the topic in: its approved requests are active. Returns how many. Nothing happens while it is not enabled.
CREATE FUNCTION cn_user.mark_ingested(the_topic text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  marked bigint;
BEGIN
  UPDATE cn_user.topic_subscription_requests r SET status = 'active', updated_at = now()
  WHERE r.topic_id = the_topic AND r.status = 'approved'
    AND EXISTS (SELECT FROM cn_relay.node_subscriptions n WHERE n.topic_id = the_topic AND n.enabled);
  GET DIAGNOSTICS marked = ROW_COUNT;
  RETURN marked;
END $$;

-- ---------------------------------------------------------------------------------------------- personal data

CREATE TABLE cn_user.personal_data_requests (
  request_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('export', 'deletion')),
  owner_hash text COLLATE "C" NOT NULL CHECK (owner_hash ~ '^[0-9a-f]{64}$'),
  pubkey text COLLATE "C" CHECK (pubkey ~ '^[0-9a-f]{64}$'),
  status text COLLATE "C" NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
  job_id bigint,
  bytes bigint NOT NULL DEFAULT 0,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  expires_at timestamptz
);
COMMENT ON TABLE cn_user.personal_data_requests IS
  'Who asked for a copy or for the deletion of everything that is stored about them, and what came of it.';
COMMENT ON COLUMN cn_user.personal_data_requests.owner_hash IS
  'SHA-256 of the key in hex: its owner can read the status also when the key itself is deleted here.';
COMMENT ON COLUMN cn_user.personal_data_requests.expires_at IS 'When the copy is thrown away.';
CREATE INDEX personal_data_of ON cn_user.personal_data_requests (owner_hash, created_at DESC, request_id);
CREATE INDEX personal_data_by_time ON cn_user.personal_data_requests (created_at, request_id);
CREATE UNIQUE INDEX personal_data_open ON cn_user.personal_data_requests (owner_hash, kind)
  WHERE status IN ('pending', 'running');

CREATE TABLE cn_user.export_chunks (
  request_id uuid NOT NULL REFERENCES cn_user.personal_data_requests ON DELETE CASCADE,
  number integer NOT NULL CHECK (number >= 0),
  bytes bytea NOT NULL CHECK (octet_length(bytes) <= 1048576),
  PRIMARY KEY (request_id, number)
);
COMMENT ON TABLE cn_user.export_chunks IS 'The copy that somebody asked for, a zip file in pieces; goes when it expires.';

-- Who a request about personal data belongs to, when the key itself is forgotten.
CREATE FUNCTION cn_user.owner_hash(who text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN encode(sha256(convert_to(who, 'UTF8')), 'hex');

-- Asks for a copy (`export`) or for the deletion (`deletion`) of everything that is stored about a key: a background job does it.
-- While one is open, that is the one that was asked for.
CREATE FUNCTION cn_user.ask_for_data(who text, the_kind text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  asked uuid;
BEGIN
  PERFORM cn_user.lock_account(who);
  PERFORM cn_user.settle_data_requests(cn_user.owner_hash(who));
  SELECT r.request_id INTO asked FROM cn_user.personal_data_requests r
  WHERE r.owner_hash = cn_user.owner_hash(who) AND r.kind = the_kind AND r.status IN ('pending', 'running');
  IF asked IS NULL THEN
    asked := gen_random_uuid();
    INSERT INTO cn_user.personal_data_requests (request_id, kind, owner_hash, pubkey, job_id)
    VALUES (asked, the_kind, cn_user.owner_hash(who), who,
      cn_admin.add_job('personal_data.' || the_kind, asked::text, '{}'));
  END IF;
  RETURN asked;
END $$;

-- Ends the requests whose jobs an operator has cancelled or that can't be done; of one owner, or of all.
CREATE FUNCTION cn_user.settle_data_requests(owner text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE cn_user.personal_data_requests r
  SET status = CASE j.status WHEN 'cancelled' THEN 'cancelled' ELSE 'failed' END, finished_at = now(),
    error = 'the node could not do it: ask its operator'
  FROM cn_admin.jobs j
  WHERE r.status IN ('pending', 'running') AND (owner IS NULL OR r.owner_hash = owner)
    AND j.id = r.job_id AND j.status IN ('cancelled', 'aborted');
END $$;

-- Takes everything about a key out of this schema and out of what can be searched, and closes its account. What remains: the
-- account as deleted, and the hash of the key in the requests about personal data, so that it can be read what became of them.
-- Repeats itself without harm.
CREATE FUNCTION cn_user.forget(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM cn_user.lock_account(who);
  UPDATE cn_user.accounts a SET status = 'deleted', plan_id = NULL, note = NULL, updated_at = now()
  WHERE a.pubkey = who AND (a.status <> 'deleted' OR a.plan_id IS NOT NULL OR a.note IS NOT NULL);
  DELETE FROM cn_user.topic_subscription_requests r WHERE r.requester_pubkey = who;
  DELETE FROM cn_user.topic_subscriptions s WHERE s.subscriber_pubkey = who;
  DELETE FROM cn_user.policy_consents c WHERE c.pubkey = who;
  DELETE FROM cn_user.usage_events e WHERE e.pubkey = who;
  DELETE FROM cn_user.usage_counters_daily c WHERE c.pubkey = who;
  DELETE FROM cn_user.auth_challenges c WHERE c.pubkey = who;
  DELETE FROM cn_user.export_chunks c USING cn_user.personal_data_requests r
  WHERE r.owner_hash = cn_user.owner_hash(who) AND c.request_id = r.request_id;
  UPDATE cn_user.personal_data_requests r
  SET pubkey = NULL, status = CASE WHEN r.status = 'succeeded' THEN 'expired' ELSE r.status END
  WHERE r.owner_hash = cn_user.owner_hash(who) AND r.kind = 'export';
  DELETE FROM cn_search.post_search_documents d WHERE d.pubkey = who AND d.deleted_at IS NULL;
END $$;

-- ---------------------------------------------------------------------------------------------- bootstrap

CREATE TABLE cn_bootstrap.keys (
  pubkey text COLLATE "C" PRIMARY KEY CHECK (pubkey ~ '^[0-9a-f]{64}$'),
  algorithm text COLLATE "C" NOT NULL CHECK (octet_length(algorithm) BETWEEN 1 AND 64),
  since timestamptz NOT NULL DEFAULT now(),
  withdrawn_at timestamptz
);
COMMENT ON TABLE cn_bootstrap.keys IS
  'The public keys that the node signs with, or has signed with: the node''s own and one for each algorithm. The secret is a file of the data folder.';
COMMENT ON COLUMN cn_bootstrap.keys.algorithm IS 'node, or what the key signs for.';
CREATE UNIQUE INDEX keys_in_use ON cn_bootstrap.keys (algorithm) WHERE withdrawn_at IS NULL;

CREATE TABLE cn_bootstrap.hints (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind integer NOT NULL,
  d text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cn_bootstrap.hints IS
  'Each descriptor and topic service that the node has published, in order: who asks with the last seq learns what is new. The newest 10,000 stay.';

CREATE FUNCTION cn_bootstrap.notify_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_keys(), '');
  RETURN NULL;
END $$;
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON cn_bootstrap.keys
  FOR EACH STATEMENT EXECUTE FUNCTION cn_bootstrap.notify_keys();

-- ---------------------------------------------------------------------------------------------- who hears of changes

-- Tells the relays whose rights have changed. The column that holds the key is the trigger's argument.
CREATE FUNCTION cn_user.notify_rights() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  row constant jsonb := to_jsonb(CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END);
BEGIN
  PERFORM pg_notify(cn_names.channel_rights(), coalesce(row ->> TG_ARGV[0], ''));
  RETURN NULL;
END $$;
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE ON cn_user.accounts
  FOR EACH ROW EXECUTE FUNCTION cn_user.notify_rights('pubkey');
CREATE TRIGGER notifies AFTER INSERT OR DELETE ON cn_user.policy_consents
  FOR EACH ROW EXECUTE FUNCTION cn_user.notify_rights('pubkey');
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OF status, services OR DELETE ON cn_user.topic_subscriptions
  FOR EACH ROW EXECUTE FUNCTION cn_user.notify_rights('subscriber_pubkey');
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE ON cn_admin.current_policies
  FOR EACH ROW EXECUTE FUNCTION cn_user.notify_rights('nobody');

CREATE FUNCTION cn_user.notify_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(cn_names.channel_requests(), '');
  RETURN NULL;
END $$;
CREATE TRIGGER notifies AFTER INSERT OR UPDATE OR DELETE ON cn_user.topic_subscription_requests
  FOR EACH STATEMENT EXECUTE FUNCTION cn_user.notify_requests();
