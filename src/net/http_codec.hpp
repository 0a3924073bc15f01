// HTTP/1.x messages from bytes: Beast's parsers behind a small face, with the checks that Beast leaves to its
// user. Fed from the caller's buffer; what is not consumed must be offered again, with more behind it.
//
// Refused beyond what Beast refuses, because intermediaries disagree about it (request smuggling): a
// Transfer-Encoding other than exactly `chunked`, one in HTTP/1.0, a Host header that is missing or repeated
// in HTTP/1.1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/message.hpp"

namespace todoke::net {

// Request line and header fields. Browsers stay below 8 KiB.
inline constexpr std::size_t kHeaderBytesMax = 16 * 1024;
// A chunk's size line and the trailer fields, of which nothing is used.
inline constexpr std::size_t kChunkLineBytesMax = 4 * 1024;

// Why a message is refused, in the shape of an error response.
struct Fault {
  int status = 400;
  std::string code = "BAD_REQUEST";
  std::string message;
};

enum class ParseState {
  head,      // the end of the header has not come yet
  body,      // the header is complete, the body is not
  complete,  // nothing more is consumed
  failed,    // see fault()
};

class RequestParser {
 public:
  RequestParser();
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Parses up to the end of the header first, then, with later calls, up to the end of the body. Returns the
  // bytes consumed.
  std::size_t feed(std::string_view input);
  [[nodiscard]] ParseState state() const;
  [[nodiscard]] const Fault& fault() const;

  // From `body` on. Method, target and headers; once.
  Request take_head();
  [[nodiscard]] bool http10() const;
  [[nodiscard]] bool keep_alive() const;  // what the client asks for
  [[nodiscard]] bool has_body() const;

  // A body longer than this fails with 413: at once when its length is declared. To be called when the header
  // is complete.
  void limit_body(std::size_t bytes_max);
  // When complete.
  std::string take_body();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ResponseParser {
 public:
  // `head_only`: the answer to a HEAD request has no body, whatever its header says.
  ResponseParser(std::size_t body_bytes_max, bool head_only);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  std::size_t feed(std::string_view input);
  // The peer has closed: completes a body without declared length, fails any other.
  void feed_end();
  [[nodiscard]] ParseState state() const;
  [[nodiscard]] const Fault& fault() const;  // its message only
  [[nodiscard]] bool keep_alive() const;
  // When complete.
  Response take_response();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace todoke::net
