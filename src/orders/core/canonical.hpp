// The one text of an order, whoever wrote it: keys sorted by their UTF-8 bytes, no white space, text in NFC
// with the shortest JSON escapes, numbers as plain decimals. Two bodies are the same order if and only if the
// digests of their canonical texts are equal. docs/orders.md has test vectors.
#pragma once

#include <string>
#include <string_view>

#include "orders/core/order.hpp"

namespace todoke::orders {

// The digest covers all members but idempotency_key and trace_id. `price` and `time_in_force` are always
// there; other members that are absent are left out.
std::string canonical_json(const Order& order);
// "sha256:" and 64 hex digits.
std::string request_digest(const Order& order);

// The whole order in the same form, as it is stored. parse_order gives it back.
std::string stored_json(const Order& order);

std::string sha256_digest(std::string_view text);

// Stands for an idempotency key where nobody may read the key itself: logs, spans, the journal.
// The first 32 hex digits of its SHA-256, as orders.key_hash() in SQL.
std::string key_hash(std::string_view idempotency_key);

}  // namespace todoke::orders
