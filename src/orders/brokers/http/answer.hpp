// What a broker's HTTP answer says about an order. Pure.
//
// The answer to a POST and to a look-up is a JSON object; only `status` is required, members that are not
// known here are passed over:
//
//   {"status": "ok" | "error", "order_ref": "…", "fills": [{"px": 100.5, "qty": 1, "ts": "2025-08-24T…Z"}],
//    "reason_code": "…", "message": "…"}
//
// A `status` of "ok" is an acknowledgement, whatever else can't be read: the order is never sent again. What
// could not be read is named in `unread`, the result has the warning UNREADABLE, and the fills that could be
// read.
#pragma once

#include <string_view>

#include "net/client.hpp"
#include "net/message.hpp"
#include "orders/core/adapter.hpp"

namespace todoke::orders {

// 2xx by its body; 408, 425, 429, 5xx and a 2xx that can't be read are worth another try, and in doubt but
// for 425 and 429; 401, 403, 404 and redirects mean that nobody there takes orders; other 4xx are final.
SendOutcome read_send_answer(const net::Response& response, const Order& order);

// 404: not found.
FindOutcome read_find_answer(const net::Response& response, const Order& order);

// An exchange without an answer.
SendOutcome read_send_failure(const net::ClientError& error);

}  // namespace todoke::orders
