// What the functions of migrations/0006_users.sql refuse, as answers: each problem has its status there and
// its code here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/route.hpp"
#include "net/message.hpp"

namespace todoke::users {

// As the functions return it; they leave out what says nothing of the problem.
struct Refused {
  std::string problem;
  std::string request_id = {};
  std::string status = {};
  std::optional<std::int64_t> current = {};
  std::optional<std::int64_t> most = {};
};

net::Response answer_to(const Refused& refused);

// Those of the problems, for the document of a route.
std::vector<api::Failure> failures_named(const std::vector<std::string_view>& problems);

}  // namespace todoke::users
