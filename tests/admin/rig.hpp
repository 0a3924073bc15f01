// A node with the Admin API, and clients of it.
#pragma once

#include <string>
#include <vector>

#include "admin/accounts.hpp"
#include "harness/http_rig.hpp"
#include "harness/node_rig.hpp"

namespace todoke::test {

using AdminAnswer = net::test::RawResponse;

inline constexpr const char* kPassword = "correct horse battery staple";

class AdminRig {
 public:
  explicit AdminRig(Flags flags = {}, std::vector<std::string> roles = {"admin"});

  // A request with these header lines, each with its line break. `path` is below the base of the API.
  AdminAnswer ask(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::string& headers = "") const;

  // Makes an administrator with kPassword.
  void add_administrator(const std::string& name, const std::string& role = "operator") const;
  AdminAnswer log_in(const std::string& name, const std::string& password = kPassword) const;
  // The header lines of a session: its cookie and, for changes, X-CSRF-Token.
  static std::string cookie_line(const AdminAnswer& login);
  static std::string session_lines(const AdminAnswer& login);
  // The header line of a new token.
  std::string token_line(const std::string& role) const;

  // As an operator with a token.
  AdminAnswer get(const std::string& path) const { return ask("GET", path, "", token_); }
  AdminAnswer post(const std::string& path, const std::string& body = "") const {
    return ask("POST", path, body, token_);
  }
  AdminAnswer put(const std::string& path, const std::string& body) const {
    return ask("PUT", path, body, token_);
  }

  // A pending request of `pubkey` for `topic`; its id.
  std::string add_request(const std::string& pubkey, const std::string& topic) const;

  NodeRig node;

 private:
  std::string token_;
};

// What a member of a flat JSON text says; empty: it is not there.
std::string json_text(const std::string& json, const std::string& member);

}  // namespace todoke::test
