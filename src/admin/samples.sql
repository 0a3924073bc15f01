-- Samples of metrics by the minute.

-- What several processes count in a minute adds up; of a level ($3) the highest counts.
-- name: add_samples
INSERT INTO cn_admin.metric_samples AS m (series, at, value)
SELECT s.series, date_trunc('minute', now()), s.value FROM unnest($1::text[], $2::double precision[]) AS s (series, value)
ON CONFLICT (series, at) DO UPDATE SET value = CASE WHEN m.series = ANY ($3::text[]) THEN greatest(m.value, excluded.value)
  ELSE m.value + excluded.value END;

-- name: drop_samples
DELETE FROM cn_admin.metric_samples WHERE at < now() - interval '25 hours';
