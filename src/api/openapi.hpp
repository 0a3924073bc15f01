// Inside this room: the OpenAPI 3.1 document of an API.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/service.hpp"

namespace todoke::api {

// What every route may answer, whatever it does.
const std::vector<Failure>& failures_of_all();
// Those of every route that takes a body.
const std::vector<Failure>& failures_of_bodies();

std::string openapi_document(const ServiceOptions& options, const std::vector<Route>& routes);

}  // namespace todoke::api
