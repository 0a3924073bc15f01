#include "properties.hpp"

#include <string_view>

#include <fmt/format.h>

namespace todoke::test {
namespace {

constexpr std::size_t kRowsShown = 10;

// A row that was requeued by hand is open while its ledger is not, until it is claimed.
constexpr std::string_view kSnapshot = R"(
  SELECT format('P2/P10 %s: outbox %s, ledger %s', o.idempotency_key, o.status, coalesce(l.status, 'none'))
  FROM orders.outbox_orders o LEFT JOIN orders.idempo_ledger l USING (idempotency_key)
  WHERE o.idempotency_key NOT IN (SELECT key FROM soak.left_over) AND (l.status IS NULL
    OR (o.status = 'succeeded') <> (l.status = 'succeeded') OR (o.status = 'aborted') <> (l.status = 'failed') AND NOT (o.status = 'pending' AND l.status = 'failed'
      AND EXISTS (SELECT FROM orders.audit a WHERE a.outbox_id = o.id AND a.actor LIKE 'sql:%'
                  AND a.before ->> 'status' = 'aborted'))))";

struct Property {
  std::string_view name;
  std::string_view sql;  // {0} attempts, {1} first backoff, {2} later ones, {3} the broker can be asked
};

constexpr Property kProperties[] = {
    {"P1 an order that was answered with 2xx is there once, with its content, in ledger and outbox", R"(
      SELECT p::text, place, o.qty, o.status, l.status FROM (SELECT DISTINCT key, qty, status FROM soak.posts) p
      LEFT JOIN soak.orders o USING (key) LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = p.key
      WHERE p.status IN (200, 201) AND (o.key IS NULL OR o.qty <> p.qty
        OR l.idempotency_key IS NULL AND (o.place = 'outbox' OR NOT EXISTS (SELECT FROM soak.aged a WHERE a.key = p.key)))
      UNION ALL
      SELECT key, string_agg(place, ','), NULL, NULL, NULL FROM soak.orders GROUP BY key HAVING count(*) > 1)"},
    // A client that posts again what was lost would hide the loss.
    {"P1 an order was there when it was answered with 2xx", R"(
      SELECT p::text, h::text FROM soak.posts p JOIN soak.history h ON h.what = 'outbox' AND h.key = p.key AND h.old_status IS NULL
      WHERE p.status IN (200, 201) AND h.at > p.at)"},
    {"P2 no order without its ledger row", R"(
      SELECT o.* FROM orders.outbox_orders o LEFT JOIN orders.idempo_ledger l USING (idempotency_key)
      WHERE l.status IS NULL)"},
    {"P3 one key is one order", R"(
      SELECT key, array_agg(DISTINCT id) FROM soak.history WHERE what = 'outbox' GROUP BY key
      HAVING count(DISTINCT id) > 1)"},
    {"P4 a body that was not accepted is never executed, and no body is refused as another that is the same",
     R"(
      SELECT b::text, o::text FROM soak.book b JOIN soak.orders o USING (key) WHERE b.qty <> o.qty
      UNION ALL
      SELECT p::text, o::text FROM soak.posts p JOIN soak.orders o USING (key) WHERE p.status = 409 AND p.qty = o.qty)"},
    {"P5 everything that was accepted is settled", R"(
      SELECT o::text FROM soak.orders o WHERE o.status NOT IN ('succeeded', 'aborted')
      UNION ALL
      SELECT l::text FROM orders.idempo_ledger l WHERE l.status = 'accepted')"},
    {"P6 the broker got every order that succeeded and none that was not accepted, not oftener than it was "
     "claimed",
     R"(
      SELECT b::text, o::text FROM soak.book b LEFT JOIN soak.orders o USING (key) WHERE o.key IS NULL OR b.copies > o.claim_no
      UNION ALL
      SELECT b::text, o::text FROM soak.orders o LEFT JOIN soak.book b USING (key)
      WHERE o.status = 'succeeded' AND b.verdict IS DISTINCT FROM 'executed'
        AND NOT EXISTS (SELECT FROM soak.left_over w WHERE w.key = o.key AND NOT w.is_sent))"},
    {"P6 what the broker executed is never taken for refused", R"(
      SELECT b::text, o::text FROM soak.book b JOIN soak.orders o USING (key)
      WHERE b.verdict = 'executed' AND o.last_error_code = 'BROKER_REJECTED')"},
    {"P6 what may be a second copy says so, and a broker that can be asked was asked before", R"(
      SELECT b::text, o::text FROM soak.book b LEFT JOIN soak.orders o USING (key)
      WHERE b.unmarked > 0 OR {3} AND b.marked > b.unknown)"},
    // What a worker had on the wire when it was stopped may arrive after everybody has given up.
    {"P6 an order that was aborted although the broker has it is in doubt, and says so", R"(
      SELECT o, b, l.response_payload_json FROM soak.orders o LEFT JOIN soak.book b USING (key)
      LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = o.key
      WHERE o.status = 'aborted' AND b.verdict = 'executed' AND NOT o.in_doubt AND NOT (b.at > o.updated_at
          AND EXISTS (SELECT FROM orders.sends s WHERE s.outbox_id = o.id AND s.outcome = 'LEASE_EXPIRED'))
        OR l.status = 'failed' AND o.key NOT IN (SELECT key FROM soak.left_over) AND coalesce(l.response_payload_json ->> 'warnings', '') LIKE '%IN_DOUBT%' <> o.in_doubt)"},
    {"P7 attempts stay within the budget", R"(
      SELECT h::text FROM soak.history h WHERE attempts > {0} OR attempts < 0)"},
    {"P7 a lapsed lease is a failed try and leaves doubt", R"(
      SELECT h::text FROM soak.history h WHERE old_status = 'sending' AND new_status = 'sending' AND new_claim > old_claim
        AND (attempts <> least(old_attempts + 1, {0}) OR NOT in_doubt))"},
    {"P8 each claim has a number of its own, which never goes back, and one holder", R"(
      SELECT h::text FROM soak.history h WHERE what = 'outbox' AND (new_claim < old_claim
        OR new_status = 'sending' AND (old_status <> 'sending' OR new_worker <> old_worker) AND new_claim <= old_claim)
      UNION ALL
      SELECT max(h::text) FROM soak.history h WHERE new_status = 'sending' GROUP BY id, new_claim
      HAVING count(DISTINCT new_worker) > 1)"},
    {"P8 only the holder of the claim settles", R"(
      SELECT s::text, (SELECT string_agg(format('%s %s to %s, claim %s to %s, %s to %s', e.at, e.old_status, e.new_status,
          e.old_claim, e.new_claim, e.old_worker, e.new_worker), E'\n    ' ORDER BY n)
        FROM soak.history e WHERE e.what = 'outbox' AND e.id = s.outbox_id)
      FROM orders.sends s LEFT JOIN soak.history h ON h.what = 'outbox' AND h.id = s.outbox_id
        AND h.at = s.written_at AND h.old_status = 'sending'
      WHERE NOT s.fenced AND s.outcome <> 'LEASE_EXPIRED'
        AND (h.old_claim, h.old_worker) IS DISTINCT FROM (s.claim_no, s.worker))"},
    {"P8 only the holder of the claim lets go", R"(
      SELECT h::text FROM soak.history h WHERE what = 'outbox' AND old_status = 'sending' AND new_status <> 'sending'
        AND NOT EXISTS (SELECT FROM soak.workers w WHERE w.session = h.session AND starts_with(h.old_worker, w.worker)))"},
    {"P8 a claim that was given back was never tried", R"(
      SELECT h::text, s::text FROM soak.history h JOIN orders.sends s ON s.outbox_id = h.id AND s.claim_no = h.old_claim
      WHERE h.what = 'outbox' AND h.old_status = 'sending' AND h.new_status = 'pending' AND s.outcome <> 'LEASE_EXPIRED')"},
    {"P8 nobody begins with an order that was taken from him", R"(
      SELECT s::text, h::text FROM orders.sends s JOIN soak.history h ON h.what = 'outbox' AND h.id = s.outbox_id
        AND h.old_claim = s.claim_no AND h.new_claim > h.old_claim AND h.old_status = 'sending'
      WHERE s.outcome <> 'LEASE_EXPIRED' AND s.began_at > h.at
        AND NOT EXISTS (SELECT FROM soak.workers w WHERE w.clock_jumps AND starts_with(s.worker, w.worker)))"},
    {"P9 what is settled changes by an audited requeue only, and success never", R"(
      SELECT h::text FROM soak.history h WHERE old_status = 'succeeded' AND new_status IS NOT NULL
      UNION ALL
      SELECT h::text FROM soak.history h WHERE what = 'outbox' AND old_status = 'aborted' AND new_status <> 'aborted'
        AND (SELECT count(*) FROM orders.audit a WHERE a.outbox_id = h.id AND a.before ->> 'status' = 'aborted')
          < (SELECT count(*) FROM soak.history e WHERE e.id = h.id AND e.old_status = 'aborted' AND e.new_status <> 'aborted')
      UNION ALL
      SELECT h::text FROM soak.history h WHERE what = 'ledger' AND old_status = 'failed' AND new_status <> 'failed'
        AND NOT EXISTS (SELECT FROM orders.audit a WHERE a.key_hash = orders.key_hash(h.key)
                        AND a.action = 'reopen ledger'))"},
    {"P10 ledger and outbox end in one outcome, in one transaction", R"(
      SELECT o::text, l::text FROM soak.orders o LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = o.key
      WHERE l.status IS NOT NULL AND o.key NOT IN (SELECT key FROM soak.left_over WHERE NOT is_same) AND ((o.status = 'succeeded') <> (l.status = 'succeeded')
        OR (o.status = 'aborted') <> (l.status = 'failed'))
      UNION ALL
      SELECT NULL, h::text FROM soak.history h WHERE what = 'ledger' AND new_status IN ('succeeded', 'failed')
        AND NOT EXISTS (SELECT FROM soak.history o WHERE o.what = 'outbox' AND o.key = h.key AND o.xid = h.xid
          AND o.new_status = CASE h.new_status WHEN 'failed' THEN 'aborted' ELSE 'succeeded' END))"},
    {"P9, P10 what earlier days have left goes in its time only, and follows its ledger unsent", R"(
      SELECT w::text, o::text, l::text, b::text FROM soak.left_over w LEFT JOIN soak.orders o USING (key)
      LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = w.key LEFT JOIN soak.book b ON b.key = w.key
      WHERE o.key IS NULL OR o.status <> w.end_status OR w.stays AND o.place <> 'outbox'
        OR w.ledger_stays AND l.status IS DISTINCT FROM w.ledger OR NOT w.is_sent AND b.copies > 0)"},
    {"P9 nothing goes to the archive before its time", R"(
      SELECT o::text FROM soak.orders o WHERE o.place = 'archive' AND o.key NOT IN (SELECT key FROM soak.aged)
        AND o.key NOT IN (SELECT key FROM soak.left_over))"},
    // By the database's clock: at is the beginning of the transaction, from which the delay counts. A broker
    // that asks for a second more gets it. A worker that was given attempts back while it was sending has
    // made up its mind by what it had claimed.
    {"P13 the next try comes after the time of the table and at most a fifth of it", R"(
      SELECT h::text FROM (
        SELECT *, CASE WHEN attempts <= 1 THEN {1} ELSE {2} END AS base,
          CASE WHEN attempts + given_back <= 1 THEN {1} ELSE {2} END AS most
        FROM soak.history h CROSS JOIN LATERAL (
          SELECT coalesce(sum(b.old_attempts - b.attempts), 0) AS given_back FROM soak.history b
          WHERE b.what = 'outbox' AND b.key = h.key AND b.id = h.id AND b.new_claim = h.new_claim
            AND b.old_status = 'sending' AND b.new_status = 'sending' AND b.attempts < b.old_attempts) b) h
      WHERE what = 'outbox' AND old_status = 'sending' AND new_status = 'failed'
        AND extract(epoch FROM next_run_at - at) NOT BETWEEN base
          AND greatest(most * 1.2, CASE WHEN error_msg LIKE '%answered 429%' THEN 1 ELSE 0 END) + 0.001
      UNION ALL
      SELECT h::text FROM (SELECT *, 0 AS base FROM soak.history) h
      WHERE what = 'outbox' AND next_run_at > at
        AND (old_status = 'failed' AND new_status = 'pending' OR old_status = 'pending' AND new_status = 'sending'))"},
};

std::string rows_text(const std::vector<std::string>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < kRowsShown; ++i) text += "  " + rows[i] + "\n";
  if (rows.size() > kRowsShown) text += fmt::format("  and {} more\n", rows.size() - kRowsShown);
  return text;
}

}  // namespace

std::string broken_in_snapshot(Link& link) {
  const auto rows = link.try_rows(std::string(kSnapshot));
  return rows ? rows_text(*rows) : std::string();
}

std::string broken_at_end(Link& link, const Limits& limits) {
  std::string text;
  for (const auto& property : kProperties) {
    const auto sql = fmt::format(fmt::runtime(property.sql), limits.attempts_max, limits.backoff_first_sec,
                                 limits.backoff_sec, limits.can_find);
    const auto rows = link.rows(fmt::format("SELECT broken::text FROM ({}) broken", sql));
    if (!rows.empty()) text += fmt::format("{}:\n{}", property.name, rows_text(rows));
  }
  return text;
}

}  // namespace todoke::test
