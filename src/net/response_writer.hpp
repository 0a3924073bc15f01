// The head of a response as bytes.
#pragma once

#include <string>

#include "net/message.hpp"

namespace todoke::net {

struct ResponseFrame {
  std::string_view request_id;
  bool keep_alive = true;
  bool http10 = false;  // the client speaks HTTP/1.0, where keep-alive must be said
};

// Status line, header fields and the empty line. The framing fields are set here (Content-Length,
// Transfer-Encoding, Connection, Date, X-Request-Id), and the handler's own fields of these names are left
// out; 101 keeps its Connection and has no length. Throws std::invalid_argument for a header that can't be
// sent (a line break in it, an empty name) and for a bad status.
std::string response_head(const Response& response, const ResponseFrame& frame);

// Whether the status allows a body at all.
bool may_have_body(int status);

std::string_view reason_phrase(int status);

// "Sun, 06 Nov 1994 08:49:37 GMT"; made once a second on each thread.
std::string_view http_date_now();

// Whether a client or handler may send this field: a token as the name, no control characters in the value.
bool valid_header(std::string_view name, std::string_view value);

}  // namespace todoke::net
