// What every route of the Admin API works with, and the ways in which most of them do it.
//
// A change is one transaction: who acts and from which network is said first (the audit reads it), then one
// statement that decides and changes. It returns `problem` (a code; NULL: it worked) and the item as JSON.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/accounts.hpp"
#include "api/route.hpp"
#include "base/attempt.hpp"
#include "base/config.hpp"
#include "base/live_config.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::admin {

// Everything outlives the API.
struct Desk {
  const LiveConfig& live;
  const Clock& clock;
  Executor executor;  // of the internal listener
  pg::Pool& pool;
  pg::Listener& listener;
  HealthBoard& health;
  metrics::Registry& metrics;
  bool is_loopback = true;  // of the internal listener
};

// Who may call a route, by role; nobody has to say who they are at the first.
extern const api::Access kAnybody;
extern const api::Access kViewers;
extern const api::Access kModerators;
extern const api::Access kOperators;

Deadline answer_within();

// Short forms of routes.
struct RouteText {
  std::string_view path;
  std::string_view name;
  std::string_view tag;
  std::string_view meaning;
};
using DeskHandler = std::function<Task<net::Response>(Desk&, const api::Call&)>;
api::Route read_route(Desk& desk, const RouteText& text, std::vector<api::Parameter> parameters,
                      DeskHandler handler);
api::Route change_route(Desk& desk, std::string_view method, const RouteText& text, const api::Access& who,
                        std::vector<api::Parameter> parameters, std::optional<api::Schema> body,
                        DeskHandler handler);

// A text of at least one character.
api::Schema some_text(std::int64_t most, std::string_view meaning);

// Parameters of a list, and what it answers: {items, next_cursor}.
inline constexpr std::int64_t kPageDefault = 50;
inline constexpr std::int64_t kPageMax = 500;
std::vector<api::Parameter> with_page(std::vector<api::Parameter> filters, bool sorted = false);
bool is_oldest_first(const api::Call& call);

// A page: the statement takes `params`, then the parts of the cursor as texts (NULL: from the beginning) and
// how many rows; its rows have the item as JSON and the parts of its place.
Task<net::Response> answer_page(Desk& desk, const api::Call& call, pg::Statement statement, pg::Params params,
                                std::size_t cursor_parts);
// The JSON of the only row; 404 where there is none.
Task<net::Response> answer_item(Desk& desk, pg::Statement statement, pg::Params params);
// A change, as above. NOT_FOUND is 404, another problem 409.
// `before`: a statement of the same transaction that has to come first.
Task<net::Response> answer_change(Desk& desk, const api::Call& call, pg::Statement statement,
                                  pg::Params params, std::optional<pg::Batch::Item> before = std::nullopt);

// Calls `work(connection, deadline)` on a connection that says who acts and from where, for functions that
// have transactions of their own.
template <class Work>
Task<net::Response> answer_by(Desk& desk, const api::Call& call, const Work& work);

// Inside answer_by.
Task<void> say_who_acts(pg::Connection& connection, const api::Caller& caller, Deadline deadline);
Task<void> forget_who_acts(pg::Connection& connection, Deadline deadline);

template <class Work>
Task<net::Response> answer_by(Desk& desk, const api::Call& call, const Work& work) {
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  co_await say_who_acts(*lease, call.caller, deadline);
  auto done = co_await attempt(work(*lease, deadline));
  if (!done) {
    // The next caller must not act in this one's name.
    lease->close();
    std::rethrow_exception(done.error());
  }
  co_await forget_who_acts(*lease, deadline);
  co_return std::move(*done);
}

// 409 for a refusal of a function that says why in words.
net::Response refused(std::string_view code, const Refusal& why);
// The body as JSON text, for jsonb parameters.
std::string body_json(const api::Call& call, std::string_view member);
std::optional<std::int64_t> body_integer(const api::Call& call, std::string_view member);
bool body_flag(const api::Call& call, std::string_view member);

}  // namespace todoke::admin
