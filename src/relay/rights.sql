-- Who may do what: the node's own keys, and what people may do while auth.mode is required.

-- name: load_node_keys
SELECT k.pubkey FROM cn_bootstrap.keys k ORDER BY k.withdrawn_at IS NOT NULL, k.since DESC LIMIT $1;

-- What each of the keys may do; its topics, and those of them whose search results it may have.
-- name: load_rights
SELECT k.pubkey, coalesce(a.status <> 'active', false) AS is_disabled,
  EXISTS (SELECT FROM cn_user.missing_consents(k.pubkey)) AS lacks_consent,
  coalesce(s.topics, '{}') AS topics, coalesce(s.searched, '{}') AS searched
FROM unnest($1::text[]) AS k (pubkey)
  LEFT JOIN cn_user.accounts a ON a.pubkey = k.pubkey
  LEFT JOIN LATERAL (
    SELECT array_agg(t.topic_id) AS topics,
      array_agg(t.topic_id) FILTER (WHERE 'index' = ANY (t.services)) AS searched
    FROM (SELECT s.topic_id, s.services FROM cn_user.topic_subscriptions s
          WHERE s.subscriber_pubkey = k.pubkey AND s.status = 'active'
          ORDER BY s.topic_id LIMIT $2) t) s ON true;

-- Counts a search of $1 today, unless the plan allows no more.
-- name: spend_search
SELECT s.allowed FROM cn_user.spend($1, 'index.search_requests', $2) s;
