// The routes of the Admin API, chapter by chapter. Each file holds one.
#pragma once

#include <memory>
#include <vector>

#include "admin/desk.hpp"
#include "admin/login.hpp"

namespace todoke::admin {

using Routes = std::vector<api::Route>;

Routes login_routes(Login& login);
Routes request_routes(Desk& desk);
Routes topic_routes(Desk& desk);
Routes user_routes(Desk& desk);
Routes policy_routes(Desk& desk);
Routes service_routes(Desk& desk);
Routes consumer_routes(Desk& desk);
Routes job_routes(Desk& desk);
Routes block_routes(Desk& desk);
Routes order_routes(Desk& desk);
Routes record_routes(Desk& desk);  // audit, series of metrics, retention plan
Routes event_routes(Desk& desk);

// All of them.
Routes all_routes(Desk& desk, Login& login);

}  // namespace todoke::admin
