-- `todoke consumers`.

-- Everything that decides whether a consumer $1 can be added: its offset, its role, where the log begins and ends, and
-- whether we may make roles.
-- name: consumer_standing
SELECT o.consumer IS NOT NULL AS has_offset,
  coalesce(o.epoch > 0, false) AS was_leased,
  r.oid IS NOT NULL AS has_role,
  coalesce(o.last_seq, 0) AS last_seq,
  f.dropped_until AS log_floor,
  greatest((SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox), f.dropped_until) AS head,
  me.rolsuper OR me.rolcreaterole AS may_make_roles,
  me.rolname::text AS me,
  coalesce(o.lease_until > clock_timestamp(), false) AS held
FROM pg_catalog.pg_roles me
CROSS JOIN cn_relay.log_floor f
LEFT JOIN cn_relay.consumer_offsets o ON o.consumer = $1
LEFT JOIN pg_catalog.pg_roles r ON r.rolname = 'consumer_' || $1
WHERE me.rolname = current_user;

-- name: put_consumer_role
SELECT cn_relay.put_consumer_role($1, $2);

-- An offset that is there stays as it is.
-- name: put_consumer_offset
INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, mandatory) VALUES ($1, $2, $3)
ON CONFLICT (consumer) DO NOTHING;

-- name: drop_consumer_role
SELECT cn_relay.drop_consumer_role($1, $2);

-- Its offset, and what was kept of it.
-- name: forget_consumer
WITH effects AS (
  DELETE FROM cn_relay.consumer_effects WHERE consumer = $1
), ranges AS (
  DELETE FROM cn_relay.consumer_ranges WHERE consumer = $1
), letters AS (
  DELETE FROM cn_relay.consumer_dead_letters WHERE consumer = $1
)
DELETE FROM cn_relay.consumer_offsets WHERE consumer = $1;

-- How the server can be reached, as it runs now.
-- name: server_address
SELECT current_setting('listen_addresses'), current_setting('port')::integer, current_setting('ssl')::boolean;
