// POSTs over plain HTTP/1.1 connections, each of which waits for its answer before it sends again. One
// thread, no parsing beyond the status and the length: the client takes little of the processor that it
// shares with the server.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace todoke::bench {

struct HttpLoadResult {
  double seconds = 0;
  std::vector<double> answer_ms;  // sorted
};

// `address` is host:port; `request` gives the whole text of request number n. Throws std::runtime_error for
// an answer of another status, and when the server hangs up.
HttpLoadResult post_all(const std::string& address, std::size_t connections, std::size_t count,
                        const std::function<std::string(std::size_t)>& request, int expected_status);

}  // namespace todoke::bench
