-- What people find: search, trends, communities. Rights and quotas first.

-- Counts one use of metric $4 by whoever has an active subscription to topic $2 that opens $3. No row: nobody has.
-- The function is given the subscriber of the row, so that it is called for a row alone.
-- name: spend_for_topic
WITH rights AS MATERIALIZED (
  SELECT s.subscriber_pubkey FROM cn_user.topic_subscriptions s
  WHERE s.subscriber_pubkey = $1 AND s.topic_id = $2 AND s.status = 'active' AND $3 = ANY (s.services)
)
SELECT u.allowed, u.current, u.most, u.reset_at
FROM rights r CROSS JOIN LATERAL cn_user.spend(r.subscriber_pubkey, $4, $5) u;

-- The same for a subscription to any topic that opens $2.
-- name: spend_for_service
WITH rights AS MATERIALIZED (
  SELECT s.subscriber_pubkey FROM cn_user.topic_subscriptions s
  WHERE s.subscriber_pubkey = $1 AND s.status = 'active' AND $2 = ANY (s.services) LIMIT 1
)
SELECT u.allowed, u.current, u.most, u.reset_at
FROM rights r CROSS JOIN LATERAL cn_user.spend(r.subscriber_pubkey, $3, $4) u;

-- The same for everybody.
-- name: spend
SELECT u.allowed, u.current, u.most, u.reset_at FROM cn_user.spend($1, $2, $3) u;

-- Whether an active subscription to one of the topics $2 opens $3.
-- name: has_service
SELECT EXISTS (SELECT FROM cn_user.topic_subscriptions s
               WHERE s.subscriber_pubkey = $1 AND s.topic_id = ANY ($2::text[]) AND s.status = 'active'
                 AND $3 = ANY (s.services));

-- The topics that somebody may ask trends of, those with the most subscribers first.
-- name: trending_topics
SELECT n.topic_id FROM cn_relay.node_subscriptions n
WHERE n.ref_count > 0
  AND EXISTS (SELECT FROM cn_user.topic_subscriptions s
              WHERE s.topic_id = n.topic_id AND s.status = 'active' AND 'index' = ANY (s.services))
ORDER BY n.ref_count DESC, n.topic_id LIMIT $1;

-- What was replied to, reacted to and reposted in each of the topics $1 within the last $2 seconds, the best $4 of each. A
-- reply counts 1, a repost 0.7, a reaction 0.5, half as much after a quarter of the window; what one author does several times
-- counts once. Of each topic the newest $3 of such events count.
--
-- Written for this plan: of each topic a walk down topic_links_time that ends at the limit or the window; of each event there one probe of the
-- partition that holds it, for its tags. Those that are aimed at are looked up after the best were chosen.
-- name: compute_trends
WITH signals AS MATERIALIZED (
  SELECT t.topic_id, encode(s.event_id, 'hex') AS event_id, s.short_author, s.kind, s.created_at, s.ingested_at, s.lifetime
  FROM cn_relay.topic_numbers t
  CROSS JOIN LATERAL (
    SELECT l.event_id, l.short_author, l.kind, l.created_at, l.ingested_at, l.lifetime
    FROM cn_relay.topic_links l
    WHERE l.topic_no = t.topic_no AND l.kind IN (1, 6, 7, 16, 1111) AND NOT l.non_public
      AND l.created_at > extract(epoch FROM now())::bigint - $2::bigint
      AND l.created_at <= extract(epoch FROM now())::bigint
    ORDER BY l.created_at DESC LIMIT $3) s
  WHERE t.topic_id = ANY ($1::text[])
), aimed AS MATERIALIZED (
  SELECT s.topic_id, s.short_author, s.created_at, a.target,
    CASE WHEN s.kind IN (6, 16) THEN 'repost' WHEN s.kind = 7 THEN 'reaction' ELSE 'reply' END AS deed
  FROM signals s
  JOIN cn_relay.events e ON e.event_id = s.event_id AND e.lifetime = s.lifetime AND e.ingested_at = s.ingested_at
  -- As NIP-10 has it: the tag that is marked so, else the last one.
  CROSS JOIN LATERAL (
    SELECT t.tag ->> 1 AS target
    FROM json_array_elements(e.tags) WITH ORDINALITY AS t (tag, place)
    WHERE t.tag ->> 0 = 'e' AND t.tag ->> 3 IS DISTINCT FROM 'mention'
    ORDER BY coalesce(t.tag ->> 3 = 'reply', false) DESC, t.place DESC LIMIT 1) a
  WHERE e.raw IS NULL AND (s.kind <> 7 OR e.content <> '-')
), deeds AS (
  SELECT a.topic_id, a.target, a.deed, max(a.created_at) AS created_at
  FROM aimed a GROUP BY a.topic_id, a.target, a.deed, a.short_author
), scored AS (
  SELECT d.topic_id, d.target,
    sum(CASE d.deed WHEN 'reply' THEN 1.0 WHEN 'repost' THEN 0.7 ELSE 0.5 END
        * exp(ln(0.5) * 4 * (extract(epoch FROM now()) - d.created_at) / $2))::double precision AS score,
    count(*) FILTER (WHERE d.deed = 'reply') AS replies,
    count(*) FILTER (WHERE d.deed = 'reaction') AS reactions,
    count(*) FILTER (WHERE d.deed = 'repost') AS reposts
  FROM deeds d GROUP BY d.topic_id, d.target
), ranked AS MATERIALIZED (
  SELECT s.*, row_number() OVER (PARTITION BY s.topic_id ORDER BY s.score DESC, s.target) AS place FROM scored s
)
SELECT r.topic_id, r.target, r.score, r.replies, r.reactions, r.reposts
FROM ranked r
CROSS JOIN LATERAL (
  SELECT FROM cn_relay.effective_events e
  WHERE e.event_id = r.target AND r.topic_id = ANY (e.topics) AND NOT e.non_public LIMIT 1) x
WHERE r.place <= $4
ORDER BY r.topic_id, r.place;

-- Topics for a key: by their name, by how many of its contacts have written there within 30 days, by how many use them. What is
-- public alone counts: who subscribes to what is nobody's business. $2: the name that is looked for, in its normal form, or ''.
--
-- Written for this plan: one walk over the topics that the node takes, for the 20 candidates; for each and each of 100 contacts a probe of
-- topic_links_author.
-- name: suggest_topics
WITH contacts AS MATERIALIZED (
  SELECT DISTINCT t.tag ->> 1 AS pubkey
  FROM cn_relay.current_versions v
  CROSS JOIN LATERAL json_array_elements(v.event_json -> 'tags') AS t (tag)
  WHERE v.effective_key = '3:' || $1 || ':' AND v.class = 'r' AND v.gone_at IS NULL
    AND t.tag ->> 0 = 'p' AND t.tag ->> 1 ~ '^[0-9a-f]{64}$'
  LIMIT 100
), named AS (
  SELECT n.topic_id, t.topic_no, n.name, n.ref_count,
    CASE WHEN $2 = '' THEN 0.0
         WHEN lower(n.name) = $2 THEN 1.0
         WHEN starts_with(lower(n.name), $2) THEN 0.8
         WHEN strpos(lower(n.name), $2) > 0 THEN 0.5 END AS likeness
  FROM cn_relay.node_subscriptions n LEFT JOIN cn_relay.topic_numbers t USING (topic_id)
  WHERE n.enabled
), candidates AS MATERIALIZED (
  SELECT n.* FROM named n
  WHERE n.likeness IS NOT NULL AND NOT cn_user.is_topic_blocked(n.topic_id)
  ORDER BY n.likeness DESC, n.ref_count DESC, n.topic_id LIMIT 20
), met AS (
  SELECT c.*, (SELECT count(*) FROM contacts k
               WHERE EXISTS (SELECT FROM cn_relay.topic_links l
                             WHERE l.topic_no = c.topic_no AND l.short_author = cn_relay.short_id(k.pubkey) AND NOT l.non_public
                               AND l.created_at > extract(epoch FROM now())::bigint - 2592000)) AS contacts
  FROM candidates c
)
SELECT m.topic_id, m.name, m.contacts,
  (0.5 * m.likeness + 0.35 * least(1, m.contacts / 5.0)
   + 0.15 * least(1, ln(1 + m.ref_count) / ln(101)))::double precision AS score,
  EXISTS (SELECT FROM cn_user.topic_subscriptions s
          WHERE s.subscriber_pubkey = $1 AND s.topic_id = m.topic_id AND s.status <> 'ended') AS is_subscribed
FROM met m ORDER BY score DESC, m.topic_id LIMIT $3;
