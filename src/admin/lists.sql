-- What the lists of the Admin API show: the item as JSON text, then the parts of its place for the cursor. The last parameters of
-- each are the parts of the cursor (NULL: from the beginning) and how many rows. A list in two orders is two halves, of which
-- one is not executed.

-- name: list_requests
WITH page AS (
  (SELECT * FROM cn_user.topic_subscription_requests r
   WHERE $4::boolean AND ($1::text IS NULL OR r.status = $1) AND ($2::text IS NULL OR r.topic_id = $2)
     AND ($3::text IS NULL OR r.requester_pubkey = $3)
     AND ($5::text IS NULL OR (r.created_at, r.request_id) > ($5::text::timestamptz, $6::text::uuid))
   ORDER BY r.created_at, r.request_id LIMIT $7)
  UNION ALL
  (SELECT * FROM cn_user.topic_subscription_requests r
   WHERE NOT $4::boolean AND ($1::text IS NULL OR r.status = $1) AND ($2::text IS NULL OR r.topic_id = $2)
     AND ($3::text IS NULL OR r.requester_pubkey = $3)
     AND ($5::text IS NULL OR (r.created_at, r.request_id) < ($5::text::timestamptz, $6::text::uuid))
   ORDER BY r.created_at DESC, r.request_id DESC LIMIT $7))
SELECT json_build_object('request_id', p.request_id, 'requester_pubkey', p.requester_pubkey, 'topic_id', p.topic_id,
    'topic_name', p.topic_name, 'requested_services', p.requested_services, 'status', p.status, 'review_note', p.review_note,
    'reviewed_by', p.reviewed_by, 'created_at', cn_admin.rfc3339(p.created_at),
    'reviewed_at', cn_admin.rfc3339(p.reviewed_at))::text,
  ARRAY[p.created_at::text, p.request_id::text]
FROM page p
ORDER BY CASE WHEN $4 THEN p.created_at END, CASE WHEN $4 THEN p.request_id END, p.created_at DESC, p.request_id DESC;

-- name: show_request
SELECT json_build_object('request_id', r.request_id, 'requester_pubkey', r.requester_pubkey, 'topic_id', r.topic_id,
  'topic_name', r.topic_name, 'requested_services', r.requested_services, 'status', r.status, 'review_note', r.review_note,
  'reviewed_by', r.reviewed_by, 'created_at', cn_admin.rfc3339(r.created_at), 'reviewed_at', cn_admin.rfc3339(r.reviewed_at))::text
FROM cn_user.topic_subscription_requests r WHERE r.request_id = $1::text::uuid;

-- name: list_node_subscriptions
SELECT json_build_object('topic_id', s.topic_id, 'name', s.name, 'enabled', s.enabled, 'pinned', s.pinned,
    'ref_count', s.ref_count, 'ingest_policy', s.ingest_policy, 'events', coalesce(u.events, 0), 'bytes', coalesce(u.bytes, 0),
    'created_at', cn_admin.rfc3339(s.created_at), 'updated_at', cn_admin.rfc3339(s.updated_at))::text,
  ARRAY[s.topic_id]
FROM (SELECT * FROM cn_relay.node_subscriptions s
      WHERE ($1::boolean IS NULL OR s.enabled = $1) AND ($2::text IS NULL OR s.topic_id > $2) ORDER BY s.topic_id LIMIT $3) s
LEFT JOIN LATERAL (SELECT sum(t.events)::bigint AS events, sum(t.bytes)::bigint AS bytes FROM cn_relay.topic_usage t
                   WHERE t.topic_id = s.topic_id) u ON true
ORDER BY s.topic_id;

-- name: show_node_subscription
SELECT json_build_object('topic_id', s.topic_id, 'name', s.name, 'enabled', s.enabled, 'pinned', s.pinned,
    'ref_count', s.ref_count, 'ingest_policy', s.ingest_policy, 'events', coalesce(u.events, 0), 'bytes', coalesce(u.bytes, 0),
    'created_at', cn_admin.rfc3339(s.created_at), 'updated_at', cn_admin.rfc3339(s.updated_at))::text
FROM cn_relay.node_subscriptions s
LEFT JOIN LATERAL (SELECT sum(t.events)::bigint AS events, sum(t.bytes)::bigint AS bytes FROM cn_relay.topic_usage t
                   WHERE t.topic_id = s.topic_id) u ON true
WHERE s.topic_id = $1;

-- name: list_users
WITH page AS (
  (SELECT * FROM cn_user.accounts a
   WHERE $2::boolean AND ($1::text IS NULL OR a.status = $1)
     AND ($3::text IS NULL OR (a.created_at, a.pubkey) > ($3::text::timestamptz, $4::text))
   ORDER BY a.created_at, a.pubkey LIMIT $5)
  UNION ALL
  (SELECT * FROM cn_user.accounts a
   WHERE NOT $2::boolean AND ($1::text IS NULL OR a.status = $1)
     AND ($3::text IS NULL OR (a.created_at, a.pubkey) < ($3::text::timestamptz, $4::text))
   ORDER BY a.created_at DESC, a.pubkey DESC LIMIT $5))
SELECT json_build_object('pubkey', p.pubkey, 'status', p.status, 'plan_id', p.plan_id, 'note', p.note,
    'created_at', cn_admin.rfc3339(p.created_at), 'updated_at', cn_admin.rfc3339(p.updated_at))::text,
  ARRAY[p.created_at::text, p.pubkey]
FROM page p
ORDER BY CASE WHEN $2 THEN p.created_at END, CASE WHEN $2 THEN p.pubkey END, p.created_at DESC, p.pubkey DESC;

-- With what they have subscribed to.
-- name: show_user
SELECT json_build_object('pubkey', a.pubkey, 'status', a.status, 'plan_id', a.plan_id, 'plan_in_force', cn_user.plan_of(a.pubkey),
  'note', a.note, 'created_at', cn_admin.rfc3339(a.created_at), 'updated_at', cn_admin.rfc3339(a.updated_at),
  'subscriptions', (SELECT coalesce(json_agg(json_build_object('topic_id', s.topic_id, 'status', s.status,
      'services', s.services, 'started_at', cn_admin.rfc3339(s.started_at)) ORDER BY s.topic_id), '[]')
    FROM (SELECT * FROM cn_user.topic_subscriptions s WHERE s.subscriber_pubkey = a.pubkey ORDER BY s.topic_id LIMIT 1000) s),
  'consents', (SELECT coalesce(json_agg(json_build_object('type', c.type, 'version', c.version,
      'consented_at', cn_admin.rfc3339(c.consented_at)) ORDER BY c.consented_at), '[]')
    FROM cn_user.policy_consents c WHERE c.pubkey = a.pubkey))::text
FROM cn_user.accounts a WHERE a.pubkey = $1;

-- name: list_plans
SELECT json_build_object('plan_id', p.plan_id, 'name', p.name, 'is_default', p.is_default,
    'limits', (SELECT coalesce(json_object_agg(l.metric, l.value ORDER BY l.metric), '{}') FROM cn_user.plan_limits l
               WHERE l.plan_id = p.plan_id),
    'accounts', (SELECT count(*) FROM cn_user.accounts a WHERE a.plan_id = p.plan_id))::text,
  ARRAY[p.plan_id]
FROM cn_user.plans p WHERE $1::text IS NULL OR p.plan_id > $1 ORDER BY p.plan_id LIMIT $2;

-- name: list_usage
SELECT json_build_object('pubkey', u.pubkey, 'metric', u.metric, 'day', u.day, 'used', u.used,
    'limit', cn_user.limit_of(u.pubkey, u.metric))::text,
  ARRAY[u.pubkey, u.metric]
FROM cn_user.usage_counters_daily u
WHERE u.day = coalesce($1::text::date, (now() AT TIME ZONE 'UTC')::date) AND ($2::text IS NULL OR u.pubkey = $2)
  AND ($3::text IS NULL OR (u.pubkey, u.metric) > ($3::text, $4::text))
ORDER BY u.pubkey, u.metric LIMIT $5;

-- name: list_policies
SELECT json_build_object('type', p.type, 'version', p.version, 'locale', p.locale, 'title', p.title, 'status', p.status,
    'is_current', c.type IS NOT NULL, 'effective_at', cn_admin.rfc3339(c.effective_at),
    'published_at', cn_admin.rfc3339(p.published_at), 'updated_at', cn_admin.rfc3339(p.updated_at))::text,
  ARRAY[p.type, p.version, p.locale]
FROM cn_admin.policies p LEFT JOIN cn_admin.current_policies c ON c.type = p.type AND c.version = p.version
WHERE ($1::text IS NULL OR p.type = $1) AND ($2::text IS NULL OR (p.type, p.version, p.locale) > ($2::text, $3::text, $4::text))
ORDER BY p.type, p.version, p.locale LIMIT $5;

-- name: show_policy
SELECT json_build_object('type', p.type, 'version', p.version, 'locale', p.locale, 'title', p.title, 'content', p.content,
    'status', p.status, 'is_current', c.type IS NOT NULL, 'effective_at', cn_admin.rfc3339(c.effective_at),
    'published_at', cn_admin.rfc3339(p.published_at), 'updated_at', cn_admin.rfc3339(p.updated_at))::text
FROM cn_admin.policies p LEFT JOIN cn_admin.current_policies c ON c.type = p.type AND c.version = p.version
WHERE p.type = $1 AND p.version = $2 AND p.locale = $3;

-- name: list_consumers
SELECT json_build_object('name', c.consumer, 'last_seq', c.last_seq, 'head', b.head, 'backlog_rows', b.rows,
    'backlog_seconds', b.seconds, 'mandatory', c.mandatory, 'paused', c.paused, 'state', c.state, 'owner', c.owner,
    'is_held', coalesce(c.lease_until > clock_timestamp(), false), 'purged_rows', c.purged_rows,
    'dead_letters', (SELECT count(*) FROM cn_relay.consumer_dead_letters d WHERE d.consumer = c.consumer),
    'rebuild', CASE WHEN c.state = 'rebuilding' THEN json_build_object('done', c.rebuild_done, 'total', c.rebuild_total,
      'since', cn_admin.rfc3339(c.rebuild_since)) END)::text,
  ARRAY[c.consumer]
FROM cn_relay.consumer_offsets c JOIN cn_relay.backlogs() b USING (consumer)
WHERE ($1::text IS NULL OR c.consumer = $1) AND ($2::text IS NULL OR c.consumer > $2)
ORDER BY c.consumer LIMIT $3;

-- name: list_dead_letters
SELECT json_build_object('seq', d.seq, 'op', d.op, 'event_id', d.event_id, 'topic_id', d.topic_id, 'error', d.error,
    'tries', d.tries, 'failed_at', cn_admin.rfc3339(d.failed_at))::text,
  ARRAY[d.seq::text]
FROM cn_relay.consumer_dead_letters d
WHERE d.consumer = $1 AND ($2::text IS NULL OR d.seq > $2::text::bigint) ORDER BY d.seq LIMIT $3;

-- name: list_jobs
WITH page AS (
  (SELECT * FROM cn_admin.jobs j
   WHERE $3::boolean AND ($1::text IS NULL OR j.status = $1) AND ($2::text IS NULL OR j.kind = $2)
     AND ($4::text IS NULL OR j.id > $4::text::bigint)
   ORDER BY j.id LIMIT $5)
  UNION ALL
  (SELECT * FROM cn_admin.jobs j
   WHERE NOT $3::boolean AND ($1::text IS NULL OR j.status = $1) AND ($2::text IS NULL OR j.kind = $2)
     AND ($4::text IS NULL OR j.id < $4::text::bigint)
   ORDER BY j.id DESC LIMIT $5))
SELECT cn_admin.job_json(p)::text, ARRAY[p.id::text] FROM page p
ORDER BY CASE WHEN $3 THEN p.id END, p.id DESC;

-- name: show_job
SELECT cn_admin.job_json(j)::text FROM cn_admin.jobs j WHERE j.id = $1;

-- name: list_personal_data_requests
SELECT json_build_object('request_id', r.request_id, 'kind', r.kind, 'owner_hash', r.owner_hash, 'status', r.status,
    'job_id', r.job_id, 'bytes', r.bytes, 'error', r.error, 'created_at', cn_admin.rfc3339(r.created_at),
    'finished_at', cn_admin.rfc3339(r.finished_at), 'expires_at', cn_admin.rfc3339(r.expires_at))::text,
  ARRAY[r.created_at::text, r.request_id::text]
FROM cn_user.personal_data_requests r
WHERE ($1::text IS NULL OR r.status = $1) AND ($2::text IS NULL OR r.kind = $2)
  AND ($3::text IS NULL OR (r.created_at, r.request_id) < ($3::text::timestamptz, $4::text::uuid))
ORDER BY r.created_at DESC, r.request_id DESC LIMIT $5;

-- name: list_blocks
SELECT json_build_object('kind', b.kind, 'value', b.value, 'reason', b.reason, 'until', cn_admin.rfc3339(b.until),
    'added_at', cn_admin.rfc3339(b.added_at), 'added_by', b.added_by, 'erase_at', cn_admin.rfc3339(b.erase_at),
    'erased_at', cn_admin.rfc3339(b.erased_at))::text,
  ARRAY[b.kind, b.value]
FROM cn_relay.blocks b
WHERE ($1::text IS NULL OR b.kind = $1) AND ($2::text IS NULL OR (b.kind, b.value) > ($2::text, $3::text))
ORDER BY b.kind, b.value LIMIT $4;

-- name: list_orders
SELECT json_build_object('id', o.id, 'key_hash', orders.key_hash(o.idempotency_key), 'status', o.status, 'attempts', o.attempts,
    'in_doubt', o.in_doubt, 'instrument', o.instrument, 'adapter', o.adapter, 'last_error_code', o.last_error_code,
    'locked_by', o.locked_by, 'created_at', cn_admin.rfc3339(o.created_at), 'next_run_at', cn_admin.rfc3339(o.next_run_at))::text,
  ARRAY[o.id::text]
FROM orders.outbox_orders o
WHERE orders.matches(o, $1, coalesce($2, false), $3, $4, NULL, NULL) AND ($5::text IS NULL OR o.id < $5::text::bigint)
ORDER BY o.id DESC LIMIT $6;

-- name: list_halts
SELECT json_build_object('adapter', h.adapter, 'instrument', h.instrument, 'refuses_intake', h.intake_refused,
    'halted_by', h.halted_by, 'halted_at', cn_admin.rfc3339(h.halted_at), 'reason', h.reason)::text,
  ARRAY[h.adapter, h.instrument]
FROM orders.halts h
WHERE $1::text IS NULL OR (h.adapter, h.instrument) > ($1::text, $2::text) ORDER BY h.adapter, h.instrument LIMIT $3;

-- Everything that was audited, by the chain: the newest first.
-- name: list_audit
SELECT json_build_object('number', c.number, 'source', c.source, 'at', cn_admin.rfc3339((r.row ->> 'at')::timestamptz),
    'actor', r.row ->> 'actor', 'action', r.row ->> 'action', 'subject', r.row ->> 'subject', 'network', r.row ->> 'network',
    'db_role', r.row ->> 'db_role', 'before', r.row -> 'before', 'after', r.row -> 'after', 'reason', r.row ->> 'reason',
    'hash', encode(c.hash, 'hex'))::text,
  ARRAY[c.number::text]
FROM cn_admin.audit_chain c
CROSS JOIN LATERAL (SELECT CASE c.source
    WHEN 'config' THEN h.row || jsonb_build_object('at', h.row -> 'changed_at', 'actor', h.row -> 'changed_by',
      'action', 'config change', 'subject', 'config ' || (h.row ->> 'key'))
    WHEN 'orders' THEN h.row || jsonb_build_object('action', 'order ' || (h.row ->> 'action'),
      'subject', 'order ' || coalesce(h.row ->> 'outbox_id', ''))
    ELSE h.row END AS row
  FROM (SELECT cn_admin.audited_row(c.source, c.row_key) AS row) h) r
WHERE ($1::text IS NULL OR r.row ->> 'actor' = $1) AND ($2::text IS NULL OR starts_with(r.row ->> 'action', $2))
  AND ($3::text IS NULL OR starts_with(r.row ->> 'subject', $3)) AND ($4::text IS NULL OR c.number < $4::text::bigint)
ORDER BY c.number DESC LIMIT $5;

-- One series: a point for each minute.
-- name: show_series
SELECT json_build_object('series', coalesce(json_object_agg(s.series, s.points ORDER BY s.series), '{}'))::text
FROM (SELECT m.series, json_agg(json_build_array(extract(epoch FROM m.at)::bigint, m.value) ORDER BY m.at) AS points
      FROM cn_admin.metric_samples m
      WHERE m.at > now() - make_interval(mins => $2::integer) AND ($1::text IS NULL OR m.series = $1)
      GROUP BY m.series) s;
