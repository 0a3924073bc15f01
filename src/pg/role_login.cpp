#include "pg/role_login.hpp"

#include <memory>
#include <stdexcept>
#include <string_view>

#include "pg/connection_state.hpp"

namespace todoke::pg {

std::string scram_verifier(Connection& connection, const std::string& role, const std::string& password) {
  auto& state = connection.state();
  const std::unique_ptr<char, decltype(&PQfreemem)> verifier(
      PQencryptPasswordConn(state.conn, password.c_str(), role.c_str(), "scram-sha-256"), &PQfreemem);
  if (!verifier) throw std::runtime_error("making a password: " + state.last_message());
  return verifier.get();
}

std::map<std::string, std::string> connection_settings(Connection& connection) {
  auto* conn = connection.state().conn;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfo(conn),
                                                                             &PQconninfoFree);
  if (!options) throw std::bad_alloc();
  std::map<std::string, std::string> settings;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    // libpq marks what must not be shown.
    const bool secret = std::string_view(option->dispchar).find('*') != std::string_view::npos;
    if (option->val != nullptr && *option->val != '\0' && !secret) settings[option->keyword] = option->val;
  }
  if (!settings.contains("host")) settings["host"] = PQhost(conn);
  if (!settings.contains("port")) settings["port"] = PQport(conn);
  return settings;
}

}  // namespace todoke::pg
