#include "users/problems.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "api/answers.hpp"
#include "base/json_writer.hpp"

namespace todoke::users {
namespace {

struct Problem {
  std::string_view code;
  int status;
  std::string_view when;
};

constexpr auto kProblems = std::to_array<Problem>({
    {"NOT_FOUND", 404, "There is none of the caller's."},
    {"ACCOUNT_DISABLED", 403, "The operator has disabled the account."},
    {"TOPIC_BLOCKED", 403, "The operator keeps the topic out."},
    {"ALREADY_SUBSCRIBED", 409, "A subscription of the caller opens all of the services."},
    {"REQUEST_EXISTS", 409,
     "A request for the topic is open; details.request_id and details.status tell which."},
    {"PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED", 429,
     "As many requests of the caller wait for a decision as may; details has current and limit."},
    {"QUOTA_EXCEEDED", 402, "The plan allows no more; details has metric, current, limit and reset_at."},
    {"NODE_TOPIC_LIMIT_REACHED", 409, "The node carries as many topics as it may."},
    {"INVALID_INVITE", 403, "The invite code is unknown, expired or used up."},
    {"ALREADY_DECIDED", 409, "The request waits no more; details.status says what became of it."},
});

const Problem& problem_named(std::string_view code) {
  const auto* found =
      std::find_if(kProblems.begin(), kProblems.end(), [&](const auto& known) { return known.code == code; });
  if (found == kProblems.end()) throw std::logic_error("unknown problem " + std::string(code));
  return *found;
}

std::string details_of(const Refused& refused) {
  JsonWriter json;
  json.begin_object();
  if (refused.problem == "QUOTA_EXCEEDED") json.member("metric", "max_topics");
  if (!refused.request_id.empty()) json.member("request_id", refused.request_id);
  if (!refused.status.empty()) json.member("status", refused.status);
  if (refused.current) json.member("current", *refused.current);
  if (refused.most) json.member("limit", *refused.most);
  // Topics are freed by giving one up, not by time.
  if (refused.problem == "QUOTA_EXCEEDED") json.key("reset_at").null();
  json.end_object();
  return std::move(json).text();
}

}  // namespace

net::Response answer_to(const Refused& refused) {
  const auto& problem = problem_named(refused.problem);
  return api::failure(problem.status, problem.code, problem.when, details_of(refused));
}

std::vector<api::Failure> failures_named(const std::vector<std::string_view>& problems) {
  std::vector<api::Failure> failures;
  for (const auto code : problems) {
    const auto& problem = problem_named(code);
    failures.push_back({problem.status, problem.code, problem.when});
  }
  return failures;
}

}  // namespace todoke::users
