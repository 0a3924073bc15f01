#include "net/http_codec.hpp"

#include <limits>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "base/text.hpp"

namespace todoke::net {

namespace http = boost::beast::http;
namespace asio = boost::asio;

namespace {

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Fault fault_of(const boost::system::error_code& error) {
  if (error == http::error::header_limit) {
    return {431, "HEADER_TOO_LARGE", fmt::format("the request header exceeds {} bytes", kHeaderBytesMax)};
  }
  if (error == http::error::body_limit) return {413, "PAYLOAD_TOO_LARGE", "the body is too large"};
  if (error == http::error::bad_version) return {400, "BAD_REQUEST", "only HTTP/1.0 and HTTP/1.1 are spoken"};
  return {400, "BAD_REQUEST", fmt::format("malformed HTTP: {}", error.message())};
}

Headers headers_of(const http::fields& fields) {
  Headers headers;
  for (const auto& field : fields) headers.add(view(field.name_string()), view(field.value()));
  return headers;
}

// What requests and responses have in common: feeding Beast piece by piece under limits.
template <class Parser>
class Feeder {
 public:
  Feeder() {
    parser.header_limit(kHeaderBytesMax);
    parser.body_limit(boost::none);  // counted here: the limit is known only when the header is
    parser.eager(false);             // stop at the end of the header
  }

  std::size_t feed(std::string_view input) {
    std::size_t consumed = 0;
    while (state == ParseState::head || state == ParseState::body) {
      boost::system::error_code error;
      const auto rest = input.substr(consumed);
      const auto n = parser.put(asio::buffer(rest.data(), rest.size()), error);
      consumed += n;
      if (error && error != http::error::need_more) {
        fail(fault_of(error));
        break;
      }
      if (state == ParseState::head && parser.is_header_done()) {
        parser.eager(true);
        state = parser.is_done() ? ParseState::complete : ParseState::body;
        check_body(0);
        return consumed;
      }
      check_body(rest.size() - n);
      if (state == ParseState::body && parser.is_done()) state = ParseState::complete;
      if (error == http::error::need_more || n == 0 || consumed == input.size()) break;
    }
    return consumed;
  }

  void check_body(std::size_t unparsed) {
    if (state != ParseState::body) return;
    const auto declared = parser.content_length();
    if (parser.get().body().size() > body_bytes_max || (declared && *declared > body_bytes_max)) {
      fail({413, "PAYLOAD_TOO_LARGE", fmt::format("the body exceeds {} bytes", body_bytes_max)});
    } else if (!parser.is_done() && unparsed > kChunkLineBytesMax) {
      fail({400, "BAD_REQUEST", "a chunk header or the trailer is too long"});
    }
  }

  void fail(Fault f) {
    fault = std::move(f);
    state = ParseState::failed;
  }

  Parser parser;
  ParseState state = ParseState::head;
  Fault fault;
  std::size_t body_bytes_max = std::numeric_limits<std::size_t>::max();
};

}  // namespace

struct RequestParser::Impl : Feeder<http::request_parser<http::string_body>> {
  // Beast's own checks leave these to us; see the head of the header.
  void check_head() {
    const auto& head = parser.get();
    const auto malformed = [&](std::string message) { fail({400, "BAD_REQUEST", std::move(message)}); };
    if (head.version() != 10 && head.version() != 11) return fail(fault_of(http::error::bad_version));
    const auto encodings = head.count(http::field::transfer_encoding);
    if (encodings > 0) {
      if (encodings > 1 || !same_ignoring_case(view(head[http::field::transfer_encoding]), "chunked")) {
        return malformed("the only Transfer-Encoding is chunked");
      }
      if (head.version() == 10) return malformed("HTTP/1.0 has no Transfer-Encoding");
      if (head.count(http::field::content_length) > 0)
        return malformed("Content-Length and Transfer-Encoding exclude each other");
    }
    const auto hosts = head.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && head.version() == 11))
      return malformed("exactly one Host header is needed");
  }

  bool started = false;
};

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view input) {
  std::size_t skipped = 0;
  // RFC 9112, 2.2: empty lines before a request are ignored.
  while (!impl_->started && input.starts_with("\r\n")) {
    input.remove_prefix(2);
    skipped += 2;
  }
  if (!impl_->started && (input.empty() || input == "\r")) return skipped;
  impl_->started = true;
  const auto before = impl_->state;
  const auto consumed = impl_->feed(input);
  const auto now = impl_->state;
  if (before == ParseState::head && (now == ParseState::body || now == ParseState::complete))
    impl_->check_head();
  return skipped + consumed;
}

ParseState RequestParser::state() const {
  return impl_->state;
}
const Fault& RequestParser::fault() const {
  return impl_->fault;
}

Request RequestParser::take_head() {
  const auto& head = impl_->parser.get();
  Request request;
  request.method = view(head.method_string());
  request.target = view(head.target());
  request.headers = headers_of(head);
  return request;
}

bool RequestParser::http10() const {
  return impl_->parser.get().version() == 10;
}
bool RequestParser::keep_alive() const {
  return impl_->parser.keep_alive();
}
bool RequestParser::has_body() const {
  return impl_->parser.chunked() || impl_->parser.content_length().value_or(0) > 0;
}

void RequestParser::limit_body(std::size_t bytes_max) {
  impl_->body_bytes_max = bytes_max;
  impl_->check_body(0);
}

std::string RequestParser::take_body() {
  return std::move(impl_->parser.get().body());
}

struct ResponseParser::Impl : Feeder<http::response_parser<http::string_body>> {};

ResponseParser::ResponseParser(std::size_t body_bytes_max, bool head_only) : impl_(std::make_unique<Impl>()) {
  impl_->body_bytes_max = body_bytes_max;
  impl_->parser.skip(head_only);
}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::feed(std::string_view input) {
  return impl_->feed(input);
}

void ResponseParser::feed_end() {
  boost::system::error_code error = http::error::partial_message;
  if (impl_->parser.got_some()) impl_->parser.put_eof(error);
  if (error) return impl_->fail({502, "BAD_RESPONSE", "the connection ended inside the response"});
  impl_->state = ParseState::complete;
}

ParseState ResponseParser::state() const {
  return impl_->state;
}
const Fault& ResponseParser::fault() const {
  return impl_->fault;
}
bool ResponseParser::keep_alive() const {
  return impl_->parser.keep_alive();
}

Response ResponseParser::take_response() {
  auto& message = impl_->parser.get();
  Response response;
  response.status = static_cast<int>(message.result_int());
  response.headers = headers_of(message);
  response.body = std::move(message.body());
  return response;
}

}  // namespace todoke::net
