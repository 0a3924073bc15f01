-- Policies and who agreed to them.

-- The current policies, one row for each type: in the language that is asked for, else in English, else in whatever there is.
-- name: current_policies
SELECT DISTINCT ON (c.type) c.type, c.version, p.locale, p.title, c.effective_at
FROM cn_admin.current_policies c
JOIN cn_admin.policies p ON p.type = c.type AND p.version = c.version AND p.status = 'published'
WHERE c.effective_at <= now()
ORDER BY c.type, p.locale = $1 DESC, p.locale = 'en' DESC, p.locale;

-- A published policy in the language that is asked for, else as above; and in which languages there is one.
-- name: published_policy
SELECT p.type, p.version, p.locale, p.title, p.content, p.published_at,
  (SELECT c.effective_at FROM cn_admin.current_policies c WHERE c.type = p.type AND c.version = p.version) AS effective_at,
  ARRAY(SELECT o.locale FROM cn_admin.policies o
        WHERE o.type = p.type AND o.version = p.version AND o.status = 'published' ORDER BY o.locale) AS locales
FROM cn_admin.policies p
WHERE p.type = $1 AND p.version = $2 AND p.status = 'published'
ORDER BY p.locale = $3 DESC, p.locale = 'en' DESC, p.locale
LIMIT 1;

-- What a key must agree to still, and what it has agreed to, the newest first.
-- name: consents_of
SELECT m.type, m.version, NULL::timestamptz AS consented_at FROM cn_user.missing_consents($1) m
UNION ALL
(SELECT c.type, c.version, c.consented_at FROM cn_user.policy_consents c
 WHERE c.pubkey = $1 ORDER BY c.consented_at DESC, c.type, c.version LIMIT 200);

-- Those of the policies that are not published. `$1` types, `$2` versions.
-- name: unpublished
SELECT (a.place - 1)::bigint AS place FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (type, version, place)
WHERE NOT EXISTS (SELECT FROM cn_admin.policies p
                  WHERE p.type = a.type AND p.version = a.version AND p.status = 'published')
ORDER BY a.place LIMIT 1;

-- name: add_consents
INSERT INTO cn_user.policy_consents (pubkey, type, version)
SELECT DISTINCT $3, a.type, a.version FROM unnest($1::text[], $2::text[]) AS a (type, version)
JOIN cn_admin.policies p ON p.type = a.type AND p.version = a.version AND p.status = 'published'
ON CONFLICT (pubkey, type, version) DO NOTHING;
