#include "admin/rig.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "admin/passwords.hpp"
#include "harness/run_task.hpp"

namespace todoke::test {
namespace {

std::string hash_of_password() {
  static const std::string kHash = admin::hash_password(kPassword);
  return kHash;
}

}  // namespace

AdminRig::AdminRig(Flags flags, std::vector<std::string> roles)
    : node({.roles = std::move(roles), .flags = std::move(flags)}), token_(token_line("operator")) {}

AdminAnswer AdminRig::ask(const std::string& method, const std::string& path, const std::string& body,
                          const std::string& headers) const {
  std::string request =
      fmt::format("{} /admin-api/v1{} HTTP/1.1\r\nHost: localhost\r\n{}", method, path, headers);
  if (!body.empty()) {
    request += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  } else if (method != "GET") {
    request += "Content-Length: 0\r\n";
  }
  net::test::RawClient client(node.internal_port());
  return client.ask(request + "\r\n" + body);
}

void AdminRig::add_administrator(const std::string& name, const std::string& role) const {
  run_task([&]() -> Task<void> {
    const auto connection = co_await node.database()->connect();
    const auto made =
        co_await admin::create_administrator(*connection, name, admin::admin_role(role).value(),
                                             hash_of_password(), "operator:test", Deadline::after(kPatience));
    if (!made) throw std::runtime_error(made.error().message);
  });
}

AdminAnswer AdminRig::log_in(const std::string& name, const std::string& password) const {
  return ask("POST", "/auth/login", fmt::format(R"({{"username":"{}","password":"{}"}})", name, password));
}

std::string AdminRig::cookie_line(const AdminAnswer& login) {
  const auto cookie = login.header("Set-Cookie");
  return "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
}

std::string AdminRig::session_lines(const AdminAnswer& login) {
  return cookie_line(login) + "X-CSRF-Token: " + json_text(login.body, "csrf_token") + "\r\n";
}

std::string AdminRig::token_line(const std::string& role) const {
  const auto made = run_task([&]() -> Task<admin::NewToken> {
    const auto connection = co_await node.database()->connect();
    co_return co_await admin::create_token(*connection, "test " + role, admin::admin_role(role).value(),
                                           std::nullopt, "operator:test", Deadline::after(kPatience));
  });
  return "Authorization: Bearer " + made.token + "\r\n";
}

std::string AdminRig::add_request(const std::string& pubkey, const std::string& topic) const {
  return node.value("SELECT request_id FROM cn_user.request_topic('" + pubkey + "', '" + topic +
                    "', NULL, '{index}', 5, 100, 'off', NULL)");
}

std::string json_text(const std::string& json, const std::string& member) {
  const auto name = "\"" + member + "\"";
  auto at = json.find(name);
  if (at == std::string::npos) return {};
  at = json.find_first_not_of(" :", at + name.size());
  if (json[at] != '"') return json.substr(at, json.find_first_of(",}", at) - at);
  return json.substr(at + 1, json.find('"', at + 1) - at - 1);
}

}  // namespace todoke::test
