-- The chain of hashes over everything that was audited.

-- The links after number $1, whose hash is $2, $3 of them; `is_right`: the hash is that of the link before and of the row as it is now.
-- name: check_links
SELECT c.number, c.source, c.row_key, c.hash, r.row IS NULL AS is_gone,
  coalesce(c.hash = cn_admin.link_hash(lag(c.hash, 1, $2::bytea) OVER (ORDER BY c.number), c.source, r.row), false) AS is_right,
  c.number = lag(c.number, 1, $1::bigint) OVER (ORDER BY c.number) + 1 AS follows
FROM (SELECT * FROM cn_admin.audit_chain WHERE number > $1 ORDER BY number LIMIT $3) c
CROSS JOIN LATERAL (SELECT cn_admin.audited_row(c.source, c.row_key) AS row) r
ORDER BY c.number;

-- Rows that no link is of: put in by hand. One statement sees rows and links of the same moment.
-- name: rows_without_link
SELECT u.source, u.row_key FROM (
  SELECT 'audit' AS source, a.id::text AS row_key FROM cn_admin.audit a
  UNION ALL
  SELECT 'orders', o.id::text FROM orders.audit o
  UNION ALL
  SELECT 'config', format('%s:%s:%s', h.service, h.version, h.key) FROM cn_admin.service_config_history h) u
WHERE NOT EXISTS (SELECT FROM cn_admin.audit_chain c WHERE c.source = u.source AND c.row_key = u.row_key)
ORDER BY 1, 2 LIMIT $1;

-- name: chain_head
SELECT h.number, h.hash FROM cn_admin.audit_head h;
