#include "admin/api.hpp"

#include <utility>

#include "admin/door.hpp"
#include "admin/routes.hpp"
#include "admin/sampler.hpp"
#include "api/service.hpp"
#include "net/config.hpp"
#include "net/hosts.hpp"

namespace todoke::admin {
namespace {

constexpr std::chrono::minutes kSampleEvery(1);

// Everything that the routes refer to, for as long as the router lives.
struct Office {
  explicit Office(Desk made) : desk(std::move(made)), login(desk) {}
  Desk desk;
  Login login;
};

// The door outlives the routes, and the office with it.
class OfficeDoor final : public api::Door {
 public:
  explicit OfficeDoor(std::shared_ptr<Office> office) : office_(std::move(office)), door_(office_->desk) {}

  Task<tl::expected<api::Caller, net::Response>> admit(const net::Request& request,
                                                       const api::Route& route) override {
    return door_.admit(request, route);
  }

 private:
  std::shared_ptr<Office> office_;
  AdminDoor door_;
};

api::ServiceOptions service_options(const std::string& version) {
  return {.title = "todoke Admin API",
          .version = version,
          .description = "What operators do with a todoke node. docs/admin-api.md is the manual.",
          .bases = {std::string(kApiBase)},
          .schemes = {{"session", R"({"type":"apiKey","in":"cookie","name":"todoke_session"})"},
                      {"token", R"({"type":"http","scheme":"bearer"})"}}};
}

}  // namespace

Routes all_routes(Desk& desk, Login& login) {
  Routes all = login_routes(login);
  for (auto* chapter :
       {request_routes, topic_routes, user_routes, policy_routes, service_routes, consumer_routes, job_routes,
        block_routes, order_routes, record_routes, event_routes}) {
    for (auto& route : chapter(desk)) all.push_back(std::move(route));
  }
  return all;
}

std::vector<std::shared_ptr<Service>> build_admin(const AdminParts& parts) {
  const bool is_loopback = net::is_loopback(parts.live.config().get(net::keys::kInternalListen));
  const auto office =
      std::make_shared<Office>(Desk{parts.live, parts.clock, parts.executor, parts.pool, parts.listener,
                                    parts.health, parts.metrics, is_loopback});
  auto routes = all_routes(office->desk, office->login);
  const auto service = std::make_shared<api::Service>(service_options(parts.version), std::move(routes),
                                                      std::make_shared<OfficeDoor>(office));
  api::Service::add_to(parts.router, service);
  return {std::make_shared<Sampler>(parts.executor, kSampleEvery, parts.pool, parts.metrics)};
}

}  // namespace todoke::admin
