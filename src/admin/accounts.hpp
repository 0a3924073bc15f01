// Who may use the Admin API: administrators with a password, their sessions, and bearer tokens for scripts.
// For commands and the API. Of cookies and tokens the database has SHA-256 only; every change of an account
// or a token leaves its row in the audit (by triggers, in the transaction of the change).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "pg/connection.hpp"

namespace todoke::admin {

// Each may do what those before it may.
enum class AdminRole : std::uint8_t { viewer, moderator, op };
std::string_view to_string(AdminRole role);
std::optional<AdminRole> admin_role(std::string_view name);

bool is_admin_name(std::string_view name);

struct Administrator {
  std::string name;
  AdminRole role = AdminRole::viewer;
  bool is_disabled = false;
  std::string created_at;
  std::string password_changed_at;
};

// Refused where there is one of that name.
Task<Expected<void>> create_administrator(pg::Connection& connection, std::string name, AdminRole role,
                                          std::string password_hash, std::string actor, Deadline deadline);
// Each ends the sessions of the account. Refused where there is none of that name.
Task<Expected<void>> reset_password(pg::Connection& connection, std::string name, std::string password_hash,
                                    std::string actor, Deadline deadline);
Task<Expected<void>> set_disabled(pg::Connection& connection, std::string name, bool disabled,
                                  std::string actor, Deadline deadline);
// At most 1,000.
Task<std::vector<Administrator>> list_administrators(pg::Connection& connection, Deadline deadline);

struct AdminToken {
  std::string id;
  std::string name;
  AdminRole role = AdminRole::viewer;
  std::string created_at;
  std::string created_by;
  std::optional<std::string> expires_at;
  std::optional<std::string> used_at;
  std::optional<std::string> revoked_at;
};
struct NewToken {
  std::string id;
  std::string token;  // shown this one time
};
Task<NewToken> create_token(pg::Connection& connection, std::string name, AdminRole role,
                            std::optional<SystemTime> expires_at, std::string actor, Deadline deadline);
// The newest first, at most 1,000.
Task<std::vector<AdminToken>> list_tokens(pg::Connection& connection, Deadline deadline);
// Refused where there is none, or it was revoked before.
Task<Expected<void>> revoke_token(pg::Connection& connection, std::string id, std::string actor,
                                  Deadline deadline);

// ---- what the API asks

// SHA-256 in hex: what the database has of a cookie or a token.
std::string hash_of_secret(std::string_view secret);

struct Credentials {
  std::string password_hash;  // empty: nobody of that name may log in
  AdminRole role = AdminRole::viewer;
};
Task<Credentials> credentials_of(pg::Connection& connection, std::string name, Deadline deadline);

struct SessionTimes {
  std::chrono::milliseconds idle_max{1'800'000};
  std::chrono::milliseconds age_max{43'200'000};
};
struct Session {
  std::string name;
  AdminRole role = AdminRole::viewer;
  std::string csrf_token;
  SystemTime expires_at{};
};
struct NewSession {
  std::string cookie;
  std::string csrf_token;
  SystemTime expires_at{};
};
// Ends the session of `old_cookie`, so that a cookie is never taken over by a login. Keeps the newest ones of
// a person.
Task<NewSession> begin_session(pg::Connection& connection, std::string name, std::string network,
                               std::string old_cookie, SessionTimes times, SystemTime now, Deadline deadline);
// Nothing: unknown, idle for too long, too old, or its account is disabled.
Task<std::optional<Session>> find_session(pg::Connection& connection, std::string cookie, SessionTimes times,
                                          SystemTime now, Deadline deadline);
Task<void> end_session(pg::Connection& connection, std::string cookie, std::string actor, std::string network,
                       Deadline deadline);

struct TokenHolder {
  std::string name;
  AdminRole role = AdminRole::viewer;
};
// Nothing: unknown, expired or revoked.
Task<std::optional<TokenHolder>> find_token(pg::Connection& connection, std::string token, SystemTime now,
                                            Deadline deadline);

}  // namespace todoke::admin
