#include "app/exposure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "net/config.hpp"
#include "orders/intake/config.hpp"
#include "orders/worker/config.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

constexpr std::string_view kBrokerOfUp = "paper";

bool takes_orders(const std::vector<std::string>& roles) {
  return std::find(roles.begin(), roles.end(), "orders") != roles.end();
}

bool is_open(const Config& config, const Key<std::string>& listen) {
  return !net::is_loopback(config.get(listen));
}

bool asks_for_tokens(const Config& config) {
  return !config.get(orders::keys::kTokensFile).empty();
}

std::vector<std::string> known_names(const Config& config) {
  auto names = config.get(net::keys::kHosts);
  if (const auto& url = config.get(relay::keys::kPublicUrl); !url.empty()) names.push_back(net::host_of(url));
  return names;
}

std::string who_reaches(const Config& config, const Key<std::string>& listen, const net::HostRule& hosts) {
  const auto& address = config.get(listen);
  if (!hosts.checks()) return fmt::format("{}, under any name", address);
  const auto names = known_names(config);
  if (!is_open(config, listen)) {
    return fmt::format("{}, from this machine, under localhost{}{}", address, names.empty() ? "" : ", ",
                       fmt::join(names, ", "));
  }
  return fmt::format("{}, under {} or an IP address", address, fmt::join(names, ", "));
}

}  // namespace

Expected<void> check_exposure(const Config& config, const std::vector<std::string>& roles) {
  if (!takes_orders(roles) || !is_open(config, net::keys::kListen) || asks_for_tokens(config) ||
      config.get(orders::keys::kAllowAnonymous))
    return {};
  return refuse(fmt::format(
      "server.listen is {}, which others can reach, and orders.tokens_file is empty: anybody could send "
      "orders. "
      "Name a file with tokens in orders.tokens_file, or let everybody in with orders.allow_anonymous = true",
      config.get(net::keys::kListen)));
}

Expected<void> check_broker_of_up(const Config& config) {
  const auto& broker = config.get(orders::keys::kAdapter);
  if (broker == kBrokerOfUp) return {};
  return refuse(
      fmt::format("broker.adapter is {}, and `todoke up` is for trying things out, with the broker {} only: "
                  "start this node with "
                  "`todoke run` (and outbox.enabled = true, which `up` sets by itself)",
                  broker, kBrokerOfUp));
}

std::vector<std::string> exposure_warnings(const Config& config, const std::vector<std::string>& roles) {
  std::vector<std::string> warnings;
  if (is_open(config, net::keys::kInternalListen)) {
    warnings.push_back(fmt::format(
        "server.internal_listen is {}: others can reach health and metrics, which ask nobody who they are; "
        "keep it on a loopback address, or let a firewall guard it{}",
        config.get(net::keys::kInternalListen),
        config.get(net::keys::kInternalTlsCert).empty()
            ? ". Nobody can log in to the Admin API there without server.internal_tls_cert"
            : ""));
  }
  if (takes_orders(roles) && is_open(config, net::keys::kListen) && !asks_for_tokens(config)) {
    warnings.push_back(fmt::format("orders.allow_anonymous: whoever can reach {} may send orders",
                                   config.get(net::keys::kListen)));
  }
  return warnings;
}

std::vector<std::pair<std::string, std::string>> exposure_lines(const Config& config,
                                                                const std::vector<std::string>& roles) {
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("public", who_reaches(config, net::keys::kListen, public_hosts(config)));
  lines.emplace_back("internal", who_reaches(config, net::keys::kInternalListen, internal_hosts(config)));
  if (takes_orders(roles)) {
    lines.emplace_back(
        "order tokens",
        asks_for_tokens(config)
            ? fmt::format("asked for, of {}", config.get(orders::keys::kTokensFile))
            : fmt::format("none: {} may send orders", is_open(config, net::keys::kListen)
                                                          ? "everybody who reaches the public listener"
                                                          : "everybody on this machine"));
  }
  return lines;
}

net::HostRule public_hosts(const Config& config) {
  return {config.get(net::keys::kListen), known_names(config)};
}

net::HostRule internal_hosts(const Config& config) {
  if (is_open(config, net::keys::kInternalListen)) return {};
  return {config.get(net::keys::kInternalListen), known_names(config)};
}

}  // namespace todoke::app
