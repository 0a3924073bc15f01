-- Subscription requests and subscriptions. What changes them are the functions of migrations/0006_users.sql.

-- name: request_topic
SELECT r.problem, r.request_id::text AS request_id, r.status, r.current, r.most
FROM cn_user.request_topic($1, $2, $3, $4::text[], $5::integer, $6::integer, $7, $8) r;

-- name: cancel_request
SELECT r.problem, r.status, r.topic_id FROM cn_user.cancel_request($1, $2::text::uuid) r;

-- name: pause_subscription
SELECT r.problem, r.status FROM cn_user.pause_subscription($1, $2) r;

-- name: resume_subscription
SELECT r.problem, r.status FROM cn_user.resume_subscription($1, $2, $3::integer) r;

-- name: end_subscription
SELECT cn_user.end_subscription($1, $2) AS problem, 'ended'::text AS status;

-- The requests of a key, the newest first, after a place in the list.
-- name: list_requests
SELECT r.request_id::text AS request_id, r.topic_id, r.topic_name, r.requested_services, r.status, r.review_note,
  r.created_at, r.reviewed_at
FROM cn_user.topic_subscription_requests r
WHERE r.requester_pubkey = $1 AND ($2::text IS NULL OR r.status = $2)
  AND ($3::timestamptz IS NULL OR (r.created_at, r.request_id) < ($3, $4::text::uuid))
ORDER BY r.created_at DESC, r.request_id DESC LIMIT $5;

-- name: get_request
SELECT r.request_id::text AS request_id, r.topic_id, r.topic_name, r.requested_services, r.status, r.review_note,
  r.created_at, r.reviewed_at
FROM cn_user.topic_subscription_requests r
WHERE r.requester_pubkey = $1 AND r.request_id = $2::text::uuid;

-- The subscriptions of a key by topic, after a topic. Without $2 those that are not ended.
-- name: list_subscriptions
SELECT s.topic_id, n.name, s.subscription_id::text AS subscription_id, s.plan_id, s.services, s.status, s.started_at, s.ended_at,
  coalesce(n.enabled, false) AS is_ingested
FROM cn_user.topic_subscriptions s
LEFT JOIN cn_relay.node_subscriptions n ON n.topic_id = s.topic_id
WHERE s.subscriber_pubkey = $1 AND s.status = coalesce($2, s.status) AND ($2 IS NOT NULL OR s.status <> 'ended')
  AND s.topic_id > $3
ORDER BY s.topic_id LIMIT $4;
