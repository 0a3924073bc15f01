// The routes of the User API by chapter, each with its handlers beside it. docs/user-api.md is for those who
// call them.
#pragma once

#include <vector>

#include "api/route.hpp"
#include "users/desk.hpp"
#include "users/trending.hpp"

namespace todoke::users {

using Routes = std::vector<api::Route>;

void add_auth_routes(Routes& routes, const DeskPtr& desk);
void add_policy_routes(Routes& routes, const DeskPtr& desk);
void add_request_routes(Routes& routes, const DeskPtr& desk);
void add_subscription_routes(Routes& routes, const DeskPtr& desk);
void add_search_routes(Routes& routes, const DeskPtr& desk, std::shared_ptr<TrendBook> book);
void add_suggest_routes(Routes& routes, const DeskPtr& desk);
void add_verdict_routes(Routes& routes, const DeskPtr& desk);
void add_bootstrap_routes(Routes& routes, const DeskPtr& desk);
void add_personal_data_routes(Routes& routes, const DeskPtr& desk);
// All of them.
Routes all_routes(const DeskPtr& desk, const std::shared_ptr<TrendBook>& book);

// A handler that is given the desk.
inline api::Handler at(const DeskPtr& desk, Task<net::Response> (*handler)(const Desk&, const api::Call&)) {
  return [desk, handler](const api::Call& call) { return handler(*desk, call); };
}

}  // namespace todoke::users
