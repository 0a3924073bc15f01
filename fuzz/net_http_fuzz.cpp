// Any bytes as a request to the HTTP server and as an answer to the HTTP client. The first byte chooses how
// the bytes are cut; the same bytes must tell the same story cut or whole, within the limits of head and
// body.
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_codec.hpp"
#include "net/proxies.hpp"
#include "net/router.hpp"
#include "require.hpp"

namespace {

using namespace todoke::net;
using todoke::fuzz::require;

constexpr std::size_t kBodyBytesMax = 8 * 1024;

struct Story {
  bool complete = false;
  bool over_limit = false;  // where a limit is noticed depends on how much has come
  std::string text;         // of a message that is complete
};

void require_clean(const Headers& headers) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : headers.all()) {
    require(!name.empty());
    require(name.find_first_of(std::string_view("\0\r\n: ", 5)) == std::string::npos);
    require(value.find_first_of(std::string_view("\0\r\n", 3)) == std::string::npos);
    bytes += name.size() + value.size();
  }
  require(bytes <= kHeaderBytesMax);
}

std::string text_of(const Headers& headers) {
  std::string text;
  for (const auto& [name, value] : headers.all()) text += name + '=' + value + '\n';
  return text;
}

// Gives the parser `piece` bytes more at a time, and again what it left. Returns the bytes consumed.
template <class Parser, class WhenHeadIsThere>
std::size_t feed(Parser& parser, std::string_view stream, std::size_t piece,
                 const WhenHeadIsThere& head_is_there) {
  std::size_t consumed = 0;
  bool has_head = false;
  for (std::size_t given = 0; given < stream.size();) {
    given = std::min(stream.size(), given + piece);
    for (bool goes_on = true; goes_on;) {
      const std::string bytes(
          stream.substr(consumed, given - consumed));  // a copy: the sanitizer sees its end
      const auto n = parser.feed(bytes);
      require(n <= bytes.size());
      consumed += n;
      if (!has_head && (parser.state() == ParseState::body || parser.state() == ParseState::complete)) {
        has_head = true;
        head_is_there();
      }
      if (parser.state() == ParseState::complete || parser.state() == ParseState::failed) return consumed;
      goes_on = n > 0 && consumed < given;
    }
  }
  return consumed;
}

void require_routed(Request& request) {
  static const Router& router = *[] {
    auto* made = new Router;
    const Handler none = [](Request&) -> todoke::Task<Response> { co_return Response{}; };
    made->add("GET", "/", none);
    made->add("POST", "/do/order", none);
    made->add("GET", "/do/order/{key}", none);
    return made;
  }();
  const auto match = router.match(request);
  if (match.route == nullptr) {
    require(match.answer.status == 204 || match.answer.status >= 400);
  } else {
    require(request.parameters.size() == match.route->parameters.size());
  }
}

Story request_story(std::string_view stream, std::size_t piece) {
  RequestParser parser;
  Story story;
  std::string head;
  const auto consumed = feed(parser, stream, piece, [&] {
    auto request = parser.take_head();
    require_clean(request.headers);
    require(!request.method.empty() && !request.target.empty());
    if (!parser.http10()) require(request.headers.has("Host"));
    head = request.method + ' ' + request.target + '\n' + text_of(request.headers);
    require_routed(request);
    parser.limit_body(kBodyBytesMax);
  });
  story.complete = parser.state() == ParseState::complete;
  if (parser.state() == ParseState::failed) {
    const auto& fault = parser.fault();
    require(fault.status >= 400 && fault.status < 500 && !fault.message.empty());
    story.over_limit = fault.status != 400 || fault.message.find("too long") != std::string::npos;
  }
  if (story.complete) {
    const auto body = parser.take_body();
    require(body.size() <= kBodyBytesMax);
    story.text = head + std::to_string(consumed) + '\n' + body;
  }
  return story;
}

Story response_story(std::string_view stream, std::size_t piece) {
  ResponseParser parser(kBodyBytesMax, false);
  Story story;
  feed(parser, stream, piece, [] {});
  if (parser.state() == ParseState::head || parser.state() == ParseState::body) parser.feed_end();
  story.complete = parser.state() == ParseState::complete;
  if (story.complete) {
    const auto response = parser.take_response();
    require_clean(response.headers);
    require(response.body.size() <= kBodyBytesMax);
    story.text = std::to_string(response.status) + '\n' + text_of(response.headers) + response.body;
  } else {
    require(!parser.fault().message.empty());
    story.over_limit = parser.fault().status == 413 || parser.fault().status == 431 ||
                       parser.fault().message.find("too long") != std::string::npos;
  }
  return story;
}

void require_same(const Story& whole, const Story& cut) {
  if (whole.over_limit || cut.over_limit) return;
  require(whole.complete == cut.complete && whole.text == cut.text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t piece = 1 + data[0];
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  require_same(request_story(stream, stream.size()), request_story(stream, piece));
  require_same(response_story(stream, stream.size()), response_story(stream, piece));
  return 0;
}
