#include "users/users.hpp"

#include <utility>

#include "api/service.hpp"
#include "users/config.hpp"
#include "users/door.hpp"
#include "users/personal_data.hpp"
#include "users/routes.hpp"
#include "users/trending.hpp"
#include "users/upkeep.hpp"

namespace todoke::users {
namespace {

// Where the node has no name of its own.
constexpr std::string_view kNameless = "todoke";
constexpr std::string_view kSecretName = "users.key";

api::ServiceOptions service_options(const std::string& version) {
  return {
      .title = "todoke User API",
      .version = version,
      .description =
          "For people who use a community node, by their Nostr public key. Every error is {code, message, "
          "details}. X-Request-Id names a request: one that is repeated with the same id and the same "
          "content is counted once for a quota.",
      .bases = {std::string(kApiBase), std::string(kSeedBase)},
      .schemes =
          {{kBearerScheme,
            R"({"type":"http","scheme":"bearer","bearerFormat":"JWT","description":"Of auth/verify."})"},
           {kNostrScheme,
            R"({"type":"http","scheme":"nostr","description":"NIP-98: an event of kind 27235 for this )"
            R"(very request, in base64."})"}},
      .cross_origin = true};
}

UpkeepOptions upkeep_options(const UsersParts& parts, const NodeFacts& node) {
  const auto& file = parts.config.get(keys::kSecretFile);
  return {file.empty() ? parts.folder / kSecretName : std::filesystem::path(file),
          node.public_url.empty() ? std::string(kNameless) : node.public_url,
          std::chrono::duration_cast<std::chrono::seconds>(parts.config.get(keys::kTokenLifetime))};
}

}  // namespace

Routes all_routes(const DeskPtr& desk, const std::shared_ptr<TrendBook>& book) {
  Routes routes;
  add_auth_routes(routes, desk);
  add_policy_routes(routes, desk);
  add_request_routes(routes, desk);
  add_subscription_routes(routes, desk);
  add_search_routes(routes, desk, book);
  add_suggest_routes(routes, desk);
  add_verdict_routes(routes, desk);
  add_bootstrap_routes(routes, desk);
  add_personal_data_routes(routes, desk);
  return routes;
}

BuiltUsers build_users(const UsersParts& parts) {
  const auto node = parts.facts(parts.config);
  const auto desk =
      std::make_shared<Desk>(parts.pool, parts.clock, settings_from(parts.config, node), parts.ports);
  const auto book = std::make_shared<TrendBook>(nullptr);
  const auto door = std::make_shared<UserDoor>(desk, parts.config, parts.clock, parts.metrics);
  const auto service =
      std::make_shared<const api::Service>(service_options(parts.version), all_routes(desk, book), door);
  api::Service::add_to(parts.router, service);
  auto upkeep = std::make_shared<Upkeep>(parts.executor, upkeep_options(parts, node), desk, parts.metrics);
  parts.jobs.add(export_kind(parts.background));
  parts.jobs.add(deletion_kind(parts.background));
  auto trending =
      std::make_shared<Trending>(parts.background_executor, parts.config.get(keys::kTrendingInterval),
                                 parts.background, desk, book, parts.metrics);
  const auto on_change = [desk, door, facts = parts.facts](const Config& config) {
    desk->set_settings(settings_from(config, facts(config)));
    door->set_rates(config);
  };
  return {{std::move(upkeep)}, {std::move(trending)}, on_change};
}

}  // namespace todoke::users
