#include "app/consumer_access.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "app/command.hpp"
#include "app/consumer_url.hpp"
#include "app/consumers_sql.hpp"
#include "app/roles.hpp"
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "pg/error.hpp"
#include "pg/role_login.hpp"
#include "pg/transaction.hpp"

namespace todoke::app {
namespace {

// "consumer_" and the name make a role's name, of which Postgres keeps 63 bytes.
constexpr std::size_t kNameBytesMax = 54;
constexpr std::size_t kPasswordBytes = 24;

struct Standing {
  bool has_offset;
  bool was_leased;
  bool has_role;
  std::int64_t last_seq;
  std::int64_t log_floor;
  std::int64_t head;
  bool may_make_roles;
  std::string me;
  bool held;  // by a node
};

Task<Standing> standing_of(pg::Connection& connection, std::string name, Deadline deadline) {
  pg::Params params(name);
  const auto rows = co_await connection.query(sql::kConsumerStanding, std::move(params), deadline);
  const auto row = rows.one();
  co_return Standing{row.get<bool>(0),         row.get<bool>(1),         row.get<bool>(2),
                     row.get<std::int64_t>(3), row.get<std::int64_t>(4), row.get<std::int64_t>(5),
                     row.get<bool>(6),         row.get<std::string>(7),  row.get<bool>(8)};
}

void refuse_unfit(const AddOptions& options, const Standing& standing) {
  const auto& name = options.name;
  if (!standing.may_make_roles) {
    throw UserError(fmt::format(
        "the database user {0} may not make roles: ALTER ROLE \"{0}\" CREATEROLE, as a superuser, "
        "lets it",
        standing.me));
  }
  if (is_own_consumer(name) || (standing.has_offset && standing.was_leased && !standing.has_role)) {
    throw UserError(fmt::format("{} is a consumer of the node itself: choose another name", name));
  }
  if (options.renew) {
    if (!standing.has_offset && !standing.has_role) {
      throw UserError(fmt::format("there is no consumer {}: leave out --renew", name));
    }
    return;
  }
  if (standing.has_role && !standing.has_offset) {
    throw UserError(
        fmt::format("the role consumer_{} is there already, of another database of this cluster or of an "
                    "earlier one: choose another name, or take it over with --renew",
                    name));
  }
  if (standing.has_role) {
    throw UserError(fmt::format("the consumer {} is there already: --renew gives it a new password", name));
  }
  if (standing.has_offset) {
    throw UserError(fmt::format("the consumer {} is there already, without a role: --renew makes one", name));
  }
}

// After which seq a new consumer begins.
std::int64_t beginning(const std::string& from, const Standing& standing) {
  if (from == "start") return standing.log_floor;
  if (from == "head") return standing.head;
  const auto seq = parse_number<std::int64_t>(from).value_or(-1);
  if (seq < 0) throw UsageError(fmt::format("--from {}: say head, start or a seq", from));
  if (seq > standing.head) {
    throw UserError(fmt::format("--from {}: the log ends at {}", seq, standing.head));
  }
  if (seq < standing.log_floor) {
    throw UserError(
        fmt::format("--from {}: rows up to {} have been dropped from the log; begin with --from start and "
                    "read cn_relay.effective_events first for what was before",
                    seq, standing.log_floor));
  }
  return seq;
}

// A role that is somebody else's or owns something, or rights that stop short of what CREATEROLE promises.
bool is_about_roles(const pg::Error& error) {
  return error.sqlstate() == "42710" || error.sqlstate() == "42501" || error.sqlstate() == "2BP01";
}

}  // namespace

void check_consumer_name(const std::string& name) {
  const bool fits =
      !name.empty() && name.size() <= kNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      });
  if (!fits) {
    throw UserError(
        fmt::format("'{}' is no name for a consumer: up to {} of a-z, 0-9, - and _", name, kNameBytesMax));
  }
}

Task<void> add_consumer(pg::Connection& connection, const Config& config, AddOptions options) {
  const auto deadline = answer_deadline();
  const auto standing = co_await standing_of(connection, options.name, deadline);
  refuse_unfit(options, standing);
  const auto first = standing.has_offset ? standing.last_seq : beginning(options.from, standing);
  const auto role = "consumer_" + options.name;
  const auto password = random_hex(kPasswordBytes);
  const auto url = co_await consumer_url(connection, config, role, password, deadline);

  std::string refused;
  try {
    auto transaction = co_await pg::begin(connection, deadline);
    pg::Params role_params(options.name, pg::scram_verifier(connection, role, password));
    co_await connection.query(sql::kPutConsumerRole, std::move(role_params), deadline);
    pg::Params offset_params(options.name, first, options.mandatory);
    co_await connection.query(sql::kPutConsumerOffset, std::move(offset_params), deadline);
    co_await transaction.commit(deadline);
  } catch (const pg::Error& error) {
    if (!is_about_roles(error)) throw;
    refused = error.fields().message;
  }
  if (!refused.empty()) throw UserError(fmt::format("{}: {}", options.name, refused));

  note(fmt::format("consumer {}, role {}, after seq {} of {}{}", options.name, role, first, standing.head,
                   options.mandatory ? ", mandatory" : ""));
  for (const auto& text : url.notes) note("note: " + text);
  print(url.url + "\n");
}

Task<void> remove_consumer(pg::Connection& connection, std::string name, bool with_owned) {
  const auto deadline = answer_deadline();
  const auto standing = co_await standing_of(connection, name, deadline);
  if (!standing.has_offset && !standing.has_role) {
    throw UserError(fmt::format("there is no consumer {}; `todoke consumers list` shows them", name));
  }
  if (standing.held) {
    throw UserError(fmt::format("a node runs {}: stop the role that does, or it comes back at once", name));
  }
  std::string refused;
  try {
    auto transaction = co_await pg::begin(connection, deadline);
    pg::Params role_params(name, with_owned);
    if (standing.has_role)
      co_await connection.query(sql::kDropConsumerRole, std::move(role_params), deadline);
    pg::Params offset_params(name);
    co_await connection.query(sql::kForgetConsumer, std::move(offset_params), deadline);
    co_await transaction.commit(deadline);
  } catch (const pg::Error& error) {
    if (!is_about_roles(error)) throw;
    refused = error.fields().message;
    if (error.sqlstate() == "2BP01" && !with_owned) refused += ": --with-owned takes that away too";
  }
  if (!refused.empty()) throw UserError(fmt::format("{}: {}", name, refused));
  print(fmt::format("removed {}\n", name));
  if (const auto role = role_of_consumer(name); !role.empty()) {
    note(fmt::format("it comes back as soon as a node runs the role {}", role));
  }
}

}  // namespace todoke::app
