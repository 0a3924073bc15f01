// A route of a JSON API as data: method, path, parameters, body, answers, who may call it, and the function
// that does it. The router, the checks of what comes in and the OpenAPI document are all made of it
// (service.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "api/schema.hpp"
#include "base/async.hpp"
#include "net/message.hpp"

namespace todoke::api {

// An answer that is no success: {code, message, details}.
struct Failure {
  int status = 0;
  std::string_view code;
  std::string_view when;  // a sentence for the document
};

// Who may call a route. The door of the API knows each by its address.
struct Access {
  std::vector<std::string_view> schemes;  // one of these credentials; empty: nobody has to say who they are
  std::vector<Failure> failures;          // what the door may answer
};

enum class In : std::uint8_t { path, query };

struct Parameter {
  std::string_view name;
  In in = In::query;
  Schema schema;
  Needed needed = Needed::optional;  // those of a path always are
};

// A success. Without a schema it has no body, or one of another type.
struct Answer {
  int status = 200;
  std::string_view meaning;
  std::optional<Schema> body = {};
  std::string_view content_type = "application/json";
};

// Who calls, as the door found out.
struct Caller {
  std::string name = {};     // a public key, an operator; empty: nobody in particular
  std::string network = {};  // of the address
};

struct Route;

// A request whose parameters and body are right.
struct Call {
  const net::Request& request;
  const Route& route;
  Caller caller;
  std::vector<std::pair<std::string_view, JsonValue>> parameters = {};
  JsonValue body = {};

  // Of a parameter. The first throws std::logic_error where there is none.
  [[nodiscard]] const std::string& text(std::string_view parameter) const;
  [[nodiscard]] std::optional<std::string> text_if(std::string_view parameter) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view parameter, std::int64_t fallback) const;
  // Of a member of the body; nothing: it is not there, or null.
  [[nodiscard]] std::optional<std::string> body_text(std::string_view member) const;
  [[nodiscard]] std::vector<std::string> body_texts(std::string_view member) const;
};

using Handler = std::function<Task<net::Response>(const Call&)>;

inline constexpr std::size_t kBodyBytesMax = 64 * 1024;
// Of a request that has nothing to say in its body.
inline constexpr std::size_t kNoBodyBytesMax = 4 * 1024;

struct Route {
  std::string_view method;
  std::string_view path;  // below the base of the API: /topic-subscriptions/{topic_id}
  std::string_view name;  // of the operation, unique: listTopicSubscriptions
  std::string_view tag;   // the chapter of the document
  std::string_view meaning;
  const Access* access = nullptr;
  std::vector<Parameter> parameters = {};
  std::optional<Schema> body = {};
  std::vector<Answer> answers = {};
  std::vector<Failure> failures = {};  // beside those of its access and those that every route has
  Handler handler = {};
  std::size_t body_bytes_max = kBodyBytesMax;
};

// The usual parameters of a list.
Parameter in_path(std::string_view name, Schema schema);
Parameter in_query(std::string_view name, Schema schema, Needed needed = Needed::optional);

// Who may pass: asked before anything of the request is looked at.
class Door {
 public:
  virtual ~Door() = default;
  // The caller, or the answer for whoever may not. Throws what the database throws.
  virtual Task<tl::expected<Caller, net::Response>> admit(const net::Request& request,
                                                          const Route& route) = 0;
};

}  // namespace todoke::api
