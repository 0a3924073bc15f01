#include "users/desk.hpp"

#include <fmt/format.h>

#include "net/config.hpp"
#include "users/config.hpp"

namespace todoke::users {
namespace {

constexpr std::string_view kWebSocketScheme = "ws";
constexpr std::string_view kHttpScheme = "http";

}  // namespace

Settings settings_from(const Config& config, NodeFacts node) {
  return {std::move(node), net::prefixes_from(config), config.get(keys::kPendingRequestsMax),
          config.get(keys::kAutoApprove), config.get(keys::kTrendingWindow)};
}

Desk::Desk(pg::Pool& pool, const Clock& clock, Settings settings, Ports ports)
    : pool_(pool),
      clock_(clock),
      settings_(std::make_shared<const Settings>(std::move(settings))),
      ports_(std::move(ports)) {}

Task<pg::Result> Desk::ask(pg::Statement statement, pg::Params params) const {
  const auto deadline = Deadline::after(kCallMax);
  const auto lease = co_await pool_.acquire(deadline);
  auto result = co_await lease->query(statement, std::move(params), deadline);
  co_return result;
}

void Desk::set_settings(Settings settings) {
  settings_.store(std::make_shared<const Settings>(std::move(settings)));
}

void Desk::set_tokens(api::AccessTokens tokens) {
  tokens_.store(std::make_shared<const api::AccessTokens>(std::move(tokens)));
}

nostr::AuthTarget Desk::target_of(const net::Request& request) const {
  const auto settings = settings_.load();
  const auto& url = settings->node.public_url;
  return {{url.empty() ? std::string(request.headers.get("Host")) : url}};
}

std::string Desk::url_of(std::string_view path) const {
  const auto settings = settings_.load();
  std::string_view url = settings->node.public_url;
  while (url.ends_with('/')) url.remove_suffix(1);
  if (!url.starts_with(kWebSocketScheme)) return fmt::format("{}{}", kApiBase, path);
  // ws is to http what wss is to https.
  return fmt::format("{}{}{}{}", kHttpScheme, url.substr(kWebSocketScheme.size()), kApiBase, path);
}

}  // namespace todoke::users
