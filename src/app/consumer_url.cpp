#include "app/consumer_url.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/connection_in_use.hpp"
#include "app/consumers_sql.hpp"
#include "base/percent.hpp"
#include "embedded/config.hpp"
#include "embedded/folder.hpp"
#include "embedded/tcp.hpp"
#include "pg/role_login.hpp"

namespace todoke::app {
namespace {

using Settings = ConnectionSettings;

// The first of the addresses, as a client names it.
std::string reachable_host(const std::string& listen_addresses) {
  auto first = listen_addresses.substr(0, listen_addresses.find(','));
  first = first.substr(0, first.find_last_not_of(' ') + 1);
  if (first == "*" || first == "0.0.0.0") return "127.0.0.1";
  return first == "::" ? "::1" : first;
}

// What of our own connection matters to others.
Settings shared_settings(pg::Connection& connection) {
  Settings settings;
  for (const auto& [name, value] : pg::connection_settings(connection)) {
    const bool said = (name == "sslmode" && value != "prefer") ||
                      (name == "target_session_attrs" && value != "any") || name == "sslrootcert" ||
                      name == "hostaddr";
    if (name == "host" || name == "port" || name == "dbname" || said) settings[name] = value;
  }
  return settings;
}

Task<Settings> embedded_settings(pg::Connection& connection, const Config& config, bool advertised,
                                 std::vector<std::string>& notes, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kServerAddress, {}, deadline);
  const auto row = rows.one();
  const auto listens = row.get<std::string>(0);
  Settings settings{{"dbname", "todoke"}};
  if (listens.empty() && !advertised) {
    settings["host"] = pg::connection_settings(connection).at("host");
    settings["port"] = std::to_string(embedded::kPort);
    notes.emplace_back(
        config.get(embedded::kLogListen).empty()
            ? "this is the Unix socket, which only the user that runs todoke and root can open; start the "
              "node with log.listen = \"127.0.0.1:5433\" (or *:5433, with log.tls_cert and log.tls_key) for "
              "TCP, then ask again with --renew"
            : "log.listen is set, but the node that runs was started without it: this is the Unix socket; "
              "start the node again, then ask again with --renew");
    co_return settings;
  }
  settings["host"] = reachable_host(listens);
  settings["port"] = std::to_string(row.get<std::int32_t>(1));
  if (row.get<bool>(2)) {
    settings["sslmode"] = "require";
    notes.emplace_back(
        "to have the server's certificate checked too, use sslmode=verify-full&sslrootcert=FILE");
  }
  const bool everywhere = listens != settings["host"];
  if (listens.empty()) {
    notes.emplace_back("log.advertise names this address, but the server takes no TCP: set log.listen too");
  } else if (everywhere && !advertised) {
    notes.emplace_back(
        "the server takes connections on every address; log.advertise = \"HOST:PORT\" puts the one that "
        "others know into this string");
  }
  co_return settings;
}

}  // namespace

std::string consumer_uri(const std::string& role, const std::string& password,
                         const ConnectionSettings& settings) {
  const auto setting = [&settings](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
  };
  const auto host = setting("host");
  const bool simple = !host.empty() && host.find_first_of("/,") == std::string::npos;
  std::string authority;
  if (simple) {
    authority = host.find(':') == std::string::npos ? host : "[" + host + "]";
    authority += ":" + setting("port");
  }
  auto text = fmt::format("postgresql://{}:{}@{}/{}", percent_encode(role), percent_encode(password),
                          authority, percent_encode(setting("dbname")));
  char separator = '?';
  for (const auto& [name, value] : settings) {
    if (name == "dbname" || (simple && (name == "host" || name == "port"))) continue;
    text += fmt::format("{}{}={}", separator, name, percent_encode(value));
    separator = '&';
  }
  return text;
}

Task<ConsumerUrl> consumer_url(pg::Connection& connection, const Config& config, std::string role,
                               std::string password, Deadline deadline) {
  ConsumerUrl result;
  std::optional<embedded::TcpAddress> advertised;
  if (const auto& text = config.get(embedded::kLogAdvertise); !text.empty()) {
    auto address = embedded::tcp_address(text, embedded::kLogAdvertise.spec.name);
    if (!address) throw UserError(address.error().message);
    advertised = *address;
  }
  Settings settings;
  if (database_in_use(config).embedded) {
    settings = co_await embedded_settings(connection, config, advertised.has_value(), result.notes, deadline);
  } else {
    settings = shared_settings(connection);
  }
  if (advertised) {
    settings.erase("hostaddr");
    settings["host"] = advertised->host;
    settings["port"] = std::to_string(advertised->port);
  }
  result.url = consumer_uri(role, password, settings);
  co_return result;
}

}  // namespace todoke::app
