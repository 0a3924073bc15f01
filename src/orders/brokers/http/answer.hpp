// Turns a broker's HTTP answer into the outcome of an order. Pure.
//
// The answer to a POST and to a look-up is a JSON object; only `status` is required, members that are not
// known here are passed over:
//
//   {"status": "ok" | "error", "order_ref": "…", "fills": [{"px": 100.5, "qty": 1, "ts": "2025-08-24T…Z"}],
//    "reason_code": "…", "message": "…"}
//
// A `status` of "ok" is an acknowledgement, whatever else can't be read: the order is never sent again.
// `unread` names the members that could not be read; the result has the warning UNREADABLE and the fills that
// could be read.
#pragma once

#include <string_view>

#include "net/client.hpp"
#include "net/message.hpp"
#include "orders/core/adapter.hpp"

namespace todoke::orders {

// The body of a 2xx decides. 408, 425, 429, 5xx and a 2xx that can't be read are worth another try, and all
// of them but 425 and 429 leave doubt. 401, 403, 404 and redirects mean that no broker takes orders there.
// Other 4xx are final.
SendOutcome read_send_answer(const net::Response& response, const Order& order);

// 404: not found.
FindOutcome read_find_answer(const net::Response& response, const Order& order);

// An exchange without an answer.
SendOutcome read_send_failure(const net::ClientError& error);

}  // namespace todoke::orders
