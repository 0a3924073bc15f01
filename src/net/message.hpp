// A request and a response as handlers see them; no Beast in sight.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "base/trace.hpp"

namespace todoke::net {

// Header fields in the order of arrival; names compare without regard to case.
class Headers {
 public:
  void add(std::string_view name, std::string_view value) { fields_.emplace_back(name, value); }
  void set(std::string_view name, std::string_view value);
  // The first field of that name; empty when there is none.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  // All fields of that name, joined by ", " as RFC 9110 allows.
  [[nodiscard]] std::string joined(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& all() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Request {
  std::string method;
  std::string target;                                      // as sent
  std::string path;                                        // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  Headers headers;
  std::string body;

  std::string peer_ip;    // the other end of the socket
  std::string client_ip;  // the same, or what a listed proxy says
  bool secure = false;    // TLS here, or a listed proxy says so
  std::string request_id;
  std::optional<TraceContext> trace;
  std::string route;  // the pattern that matched, such as /do/order/{key}; for metrics
  std::map<std::string, std::string> parameters;  // path parameters, percent-decoded

  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
};

// A body that comes piece by piece: its length is not known, or its end is far. Used by one connection, on
// its executor.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // The next piece; nothing: that was all. What is thrown cuts the connection, so that the client does not
  // take the last piece for the end.
  virtual Task<std::optional<std::string>> next() = 0;
  // The server stops: next() gives nothing soon, also one that is waiting.
  virtual void stop() = 0;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
  std::shared_ptr<BodyStream> stream = nullptr;  // comes instead of the body
};

Response text_response(int status, std::string body,
                       std::string_view content_type = "text/plain; charset=utf-8");
Response json_response(int status, std::string json);

// The one error shape: {"code": …, "message": …, "details": {…}}. `details` is JSON text of an object, or
// empty.
Response error_response(int status, std::string_view code, std::string_view message,
                        std::string_view details = "{}");

}  // namespace todoke::net
