-- Searching the documents.

-- For one transaction: the plan depends on how frequent the words are, so none is kept; and the server ends what its client
-- no longer waits for.
-- name: set_up_search
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
  set_config('statement_timeout', $1, true);

-- The newest $14 documents that match, between the bounds of the window, ranked; of these $13 from the last rank on.
-- One row at least: the number of candidates and the oldest and newest of them, and with it the results.
--
-- Conditions on NULL fall away when the plan is made. A list of one value is an equation: the index on it then gives the
-- documents in the order of time, up to the limit, where a list would be read whole and sorted. $17 to $24: one list for each
-- letter of a tag.
--
-- rank: relevance of the text (60 %; a word once in the text is 0.38 of it, in the title 0.86) and recency at $7 (40 %, half
-- of it after three days), in billionths so that it compares the same on every page. An event that is no longer in effect is not shown, whatever the log has told
-- us by now.
-- name: search_documents
WITH candidates AS MATERIALIZED (
  SELECT d.event_id, d.created_at, d.ingested_at, d.tokens
  FROM cn_search.post_search_documents d
  WHERE d.deleted_at IS NULL
    AND ($1::text IS NULL OR d.tokens @@ $1::text::tsquery)
    AND ($2::text[] IS NULL OR d.topics && $2)
    AND ($3::integer[] IS NULL OR cardinality($3) = 1 AND d.kind = $3[1] OR cardinality($3) > 1 AND d.kind = ANY ($3))
    AND ($4::text[] IS NULL OR cardinality($4) = 1 AND d.pubkey = $4[1] OR cardinality($4) > 1 AND d.pubkey = ANY ($4))
    AND ($5::bigint IS NULL OR d.created_at >= $5)
    AND ($6::bigint IS NULL OR d.created_at <= $6)
    AND ($8::bigint IS NULL OR (d.created_at, d.event_id) < ($8, $9::text))
    AND ($10::bigint IS NULL OR (d.created_at, d.event_id) >= ($10, $11::text))
    AND ($16::text[] IS NULL OR d.event_id = ANY ($16))
    AND ($17::bigint[] IS NULL OR d.tags && $17)
    AND ($18::bigint[] IS NULL OR d.tags && $18)
    AND ($19::bigint[] IS NULL OR d.tags && $19)
    AND ($20::bigint[] IS NULL OR d.tags && $20)
    AND ($21::bigint[] IS NULL OR d.tags && $21)
    AND ($22::bigint[] IS NULL OR d.tags && $22)
    AND ($23::bigint[] IS NULL OR d.tags && $23)
    AND ($24::bigint[] IS NULL OR d.tags && $24)
  ORDER BY d.created_at DESC, d.event_id DESC
  LIMIT $14),
ranked AS (
  SELECT c.event_id, c.created_at, c.ingested_at,
    round(6e8::float8 * t.relevance / (t.relevance + 0.1::float8)
          + 4e8::float8 / (1 + greatest($7::bigint::float8 - c.created_at::float8, 0) / 259200))::bigint AS rank
  FROM candidates c CROSS JOIN LATERAL (
    SELECT coalesce(ts_rank('{0.1, 0.2, 0.6, 1.0}', c.tokens, $1::text::tsquery), 0)::float8 AS relevance) t),
page AS (
  SELECT r.event_id, r.created_at, r.rank FROM ranked r
  WHERE ($12::bigint IS NULL OR (r.rank, r.event_id) < ($12, $15::text))
    AND EXISTS (
      SELECT FROM cn_relay.events e
      WHERE e.event_id = r.event_id AND e.ingested_at = r.ingested_at AND e.deleted_at IS NULL
        AND e.superseded_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > now()))
  ORDER BY r.rank DESC, r.event_id DESC
  LIMIT $13)
SELECT b.candidates, b.newest, o.created_at, o.event_id, p.event_id, p.created_at, p.rank
FROM (SELECT count(*) AS candidates, max(created_at) AS newest FROM candidates) b
LEFT JOIN LATERAL (SELECT created_at, event_id FROM candidates ORDER BY created_at, event_id LIMIT 1) o ON true
LEFT JOIN page p ON true
ORDER BY p.rank DESC, p.event_id DESC;
