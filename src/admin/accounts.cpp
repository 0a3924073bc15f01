#include "admin/accounts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "admin/accounts_sql.hpp"
#include "base/bytes.hpp"
#include "base/sha256.hpp"

namespace todoke::admin {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kTokenIdBytes = 8;
constexpr std::size_t kNameMax = 64;
// So that a token that leaked is known as what it is.
constexpr std::string_view kTokenBegins = "todoke_admin_";

constexpr std::array<std::string_view, 3> kRoleNames{"viewer", "moderator", "operator"};

AdminRole role_of(const pg::Row& row, std::size_t column) {
  const auto role = admin_role(row.get<std::string>(column));
  if (!role) throw std::logic_error("the database has another role");
  return *role;
}

// Runs one statement as `actor` and gives what it returned.
Task<pg::Result> run_as(pg::Connection& connection, std::string actor, std::string network,
                        pg::Statement statement, pg::Params params, Deadline deadline) {
  pg::Batch batch;
  batch.add(sql::kActFor, {actor, network});
  batch.add(statement, std::move(params));
  const auto results = co_await connection.run(std::move(batch), deadline);
  co_return results.back();
}

}  // namespace

std::string_view to_string(AdminRole role) {
  return kRoleNames.at(static_cast<std::size_t>(role));
}

std::optional<AdminRole> admin_role(std::string_view name) {
  const auto found = std::find(kRoleNames.begin(), kRoleNames.end(), name);
  if (found == kRoleNames.end()) return std::nullopt;
  return static_cast<AdminRole>(found - kRoleNames.begin());
}

bool is_admin_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kNameMax && is_plain(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '@' || c == '-'; });
}

std::string hash_of_secret(std::string_view secret) {
  return to_hex(sha256({secret}));
}

Task<Expected<void>> create_administrator(pg::Connection& connection, std::string name, AdminRole role,
                                          std::string password_hash, std::string actor, Deadline deadline) {
  pg::Params params(name, to_string(role), password_hash);
  const auto rows = co_await run_as(connection, std::move(actor), "", sql::kCreateAdministrator,
                                    std::move(params), deadline);
  if (rows.empty()) co_return refuse(fmt::format("there is an administrator {} already", name));
  co_return Expected<void>();
}

Task<Expected<void>> reset_password(pg::Connection& connection, std::string name, std::string password_hash,
                                    std::string actor, Deadline deadline) {
  pg::Params params(name, password_hash);
  const auto rows =
      co_await run_as(connection, std::move(actor), "", sql::kResetPassword, std::move(params), deadline);
  if (rows.empty()) co_return refuse(fmt::format("there is no administrator {}", name));
  co_return Expected<void>();
}

Task<Expected<void>> set_disabled(pg::Connection& connection, std::string name, bool disabled,
                                  std::string actor, Deadline deadline) {
  pg::Params params(name, disabled);
  const auto rows =
      co_await run_as(connection, std::move(actor), "", sql::kSetDisabled, std::move(params), deadline);
  if (rows.empty()) co_return refuse(fmt::format("there is no administrator {}", name));
  co_return Expected<void>();
}

Task<std::vector<Administrator>> list_administrators(pg::Connection& connection, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kListAdministrators, {}, deadline);
  std::vector<Administrator> list;
  for (const auto& row : rows) {
    list.push_back({row.get<std::string>(0), role_of(row, 1), row.get<bool>(2), row.get<std::string>(3),
                    row.get<std::string>(4)});
  }
  co_return list;
}

Task<NewToken> create_token(pg::Connection& connection, std::string name, AdminRole role,
                            std::optional<SystemTime> expires_at, std::string actor, Deadline deadline) {
  NewToken made{random_hex(kTokenIdBytes), std::string(kTokenBegins) + random_hex(kSecretBytes)};
  pg::Params params(made.id, hash_of_secret(made.token), name, to_string(role), expires_at);
  co_await run_as(connection, std::move(actor), "", sql::kCreateToken, std::move(params), deadline);
  co_return made;
}

Task<std::vector<AdminToken>> list_tokens(pg::Connection& connection, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kListTokens, {}, deadline);
  std::vector<AdminToken> list;
  for (const auto& row : rows) {
    using Text = std::optional<std::string>;
    list.push_back({row.get<std::string>(0), row.get<std::string>(1), role_of(row, 2),
                    row.get<std::string>(3), row.get<std::string>(4), row.get<Text>(5), row.get<Text>(6),
                    row.get<Text>(7)});
  }
  co_return list;
}

Task<Expected<void>> revoke_token(pg::Connection& connection, std::string id, std::string actor,
                                  Deadline deadline) {
  pg::Params params(id);
  const auto rows =
      co_await run_as(connection, std::move(actor), "", sql::kRevokeToken, std::move(params), deadline);
  if (rows.empty()) co_return refuse(fmt::format("there is no token {} that could be revoked", id));
  co_return Expected<void>();
}

Task<Credentials> credentials_of(pg::Connection& connection, std::string name, Deadline deadline) {
  pg::Params params(name);
  const auto rows = co_await connection.query(sql::kCredentialsOf, std::move(params), deadline);
  Credentials found;
  if (rows.empty()) co_return found;
  found.password_hash = rows.one().get<std::string>(0);
  found.role = role_of(rows.one(), 1);
  co_return found;
}

Task<NewSession> begin_session(pg::Connection& connection, std::string name, std::string network,
                               std::string old_cookie, SessionTimes times, SystemTime now,
                               Deadline deadline) {
  NewSession made{random_hex(kSecretBytes), random_hex(kSecretBytes), now + times.age_max};
  pg::Params params(hash_of_secret(made.cookie), name, made.csrf_token, network, now, made.expires_at,
                    hash_of_secret(old_cookie));
  co_await run_as(connection, "admin:" + name, network, sql::kBeginSession, std::move(params), deadline);
  co_return made;
}

Task<std::optional<Session>> find_session(pg::Connection& connection, std::string cookie, SessionTimes times,
                                          SystemTime now, Deadline deadline) {
  pg::Params params(hash_of_secret(cookie), now, now - times.idle_max);
  const auto rows = co_await connection.query(sql::kFindSession, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  Session session;
  session.name = row.get<std::string>(0);
  session.role = role_of(row, 1);
  session.csrf_token = row.get<std::string>(2);
  session.expires_at = row.get<SystemTime>(3);
  co_return session;
}

Task<void> end_session(pg::Connection& connection, std::string cookie, std::string actor, std::string network,
                       Deadline deadline) {
  pg::Params params(hash_of_secret(cookie));
  co_await run_as(connection, std::move(actor), std::move(network), sql::kEndSession, std::move(params),
                  deadline);
}

Task<std::optional<TokenHolder>> find_token(pg::Connection& connection, std::string token, SystemTime now,
                                            Deadline deadline) {
  pg::Params params(hash_of_secret(token), now);
  const auto rows = co_await connection.query(sql::kFindToken, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  TokenHolder holder;
  holder.name = rows.one().get<std::string>(0);
  holder.role = role_of(rows.one(), 1);
  co_return holder;
}

}  // namespace todoke::admin
