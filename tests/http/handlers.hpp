// Handlers that the tests of the server share.
#pragma once

#include "net/router.hpp"

namespace todoke::net::test {

// The body of the request, or its path when it has none.
inline Task<Response> echo(Request& request) {
  co_return text_response(200, request.body.empty() ? request.path : request.body);
}

inline Task<Response> fail(Request&) {
  throw std::runtime_error("secret of the house");
  co_return Response{};
}

// What the server found out about the client.
inline Task<Response> who(Request& request) {
  co_return text_response(200, request.client_ip + (request.secure ? " secure" : " plain"));
}

}  // namespace todoke::net::test
