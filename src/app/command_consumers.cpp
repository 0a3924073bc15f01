// Who follows the log.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "app/command.hpp"
#include "app/connection_in_use.hpp"
#include "app/consumer_url.hpp"
#include "app/consumers.hpp"
#include "app/consumers_sql.hpp"
#include "base/bytes.hpp"
#include "pg/error.hpp"
#include "pg/role_login.hpp"
#include "pg/transaction.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kAnswerMax(30);
// "consumer_" and the name make a role's name, of which Postgres keeps 63 bytes.
constexpr std::size_t kNameBytesMax = 54;
constexpr std::size_t kPasswordBytes = 24;

// Standard output has the answer only, so that it can be taken by a script.
void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

void note(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

void check_name(const std::string& name) {
  const bool fits =
      !name.empty() && name.size() <= kNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      });
  if (!fits) {
    throw UserError(
        fmt::format("'{}' is no name for a consumer: up to {} of a-z, 0-9, - and _", name, kNameBytesMax));
  }
}

// ---------------------------------------------------------------------------------------------- add

struct AddOptions {
  std::string name;
  std::string from = "start";
  bool mandatory = false;
  bool renew = false;
};

struct Standing {
  bool has_offset;
  bool was_leased;
  bool has_role;
  std::int64_t last_seq;
  std::int64_t log_floor;
  std::int64_t head;
  bool may_make_roles;
  std::string me;
};

Task<Standing> standing_of(pg::Connection& connection, std::string name, Deadline deadline) {
  pg::Params params(name);
  const auto rows = co_await connection.query(sql::kConsumerStanding, std::move(params), deadline);
  const auto row = rows.one();
  co_return Standing{row.get<bool>(0),         row.get<bool>(1),         row.get<bool>(2),
                     row.get<std::int64_t>(3), row.get<std::int64_t>(4), row.get<std::int64_t>(5),
                     row.get<bool>(6),         row.get<std::string>(7)};
}

void refuse_unfit(const AddOptions& options, const Standing& standing) {
  const auto& name = options.name;
  if (!standing.may_make_roles) {
    throw UserError(fmt::format(
        "the database user {0} may not make roles: ALTER ROLE \"{0}\" CREATEROLE, as a superuser, "
        "lets it",
        standing.me));
  }
  if (standing.has_offset && standing.was_leased && !standing.has_role) {
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
  std::int64_t seq = 0;
  const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), seq);
  if (error != std::errc() || end != from.data() + from.size() || seq < 0) {
    throw UsageError(fmt::format("--from {}: say head, start or a seq", from));
  }
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

Task<void> add(pg::Connection& connection, const Config& config, AddOptions options) {
  const auto deadline = Deadline::after(kAnswerMax);
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
    // A role that is somebody else's, or rights that stop short of what CREATEROLE promises.
    if (error.sqlstate() != "42710" && error.sqlstate() != "42501") throw;
    refused = error.fields().message;
  }
  if (!refused.empty()) throw UserError(fmt::format("{}: {}", options.name, refused));

  note(fmt::format("consumer {}, role {}, after seq {} of {}{}", options.name, role, first, standing.head,
                   options.mandatory ? ", mandatory" : ""));
  for (const auto& text : url.notes) note("note: " + text);
  print(url.url + "\n");
}

int run_add(const Config& config, const Arguments& arguments) {
  if (arguments.words.size() != 2) throw UsageError("consumers add: name one consumer");
  AddOptions options;
  options.name = arguments.words[1];
  check_name(options.name);
  options.mandatory = arguments.has("mandatory");
  options.renew = arguments.has("renew");
  if (arguments.has("from")) options.from = arguments.options.at("from");
  if (options.renew && (options.mandatory || arguments.has("from"))) {
    throw UsageError("consumers add: --renew changes the password only, not --from and --mandatory");
  }
  with_migrated_database(config,
                         [&](pg::Connection& connection) { return add(connection, config, options); });
  return 0;
}

// ---------------------------------------------------------------------------------------------- the others

const std::string& named(const Arguments& arguments) {
  if (arguments.words.size() < 2)
    throw UsageError(fmt::format("consumers {}: name one consumer", arguments.words[0]));
  return arguments.words[1];
}

int run_list(const Config& config, const Arguments& arguments) {
  if (arguments.words.size() > 1)
    throw UsageError("consumers list takes no name; `consumers show NAME` does");
  with_migrated_database(config, [](pg::Connection& connection) { return print_consumers(connection); });
  return 0;
}

int run_show(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  with_migrated_database(config, [&](pg::Connection& connection) { return show_consumer(connection, name); });
  return 0;
}

int run_pause(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const bool paused = arguments.words[0] == "pause";
  with_migrated_database(
      config, [&](pg::Connection& connection) { return pause_consumer(connection, name, paused); });
  return 0;
}

int run_replay(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  with_migrated_database(
      config, [&](pg::Connection& connection) { return replay_consumer(connection, name, arguments); });
  return 0;
}

int run_rebuild(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const bool wait = !arguments.has("no-wait");
  with_migrated_database(
      config, [&](pg::Connection& connection) { return rebuild_consumer(connection, name, wait); });
  return 0;
}

int run_dead_letters(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const auto& words = arguments.words;
  const auto action = words.size() > 2 ? words[2] : std::string("list");
  if (action != "list" && action != "retry" && action != "drop") {
    throw UsageError("consumers dead-letters NAME: say list, retry or drop");
  }
  std::optional<std::int64_t> seq;
  if (words.size() > 3) seq = parse_seq(words[3]);
  with_migrated_database(
      config, [&](pg::Connection& connection) { return dead_letters(connection, name, action, seq); });
  return 0;
}

// ---------------------------------------------------------------------------------------------- the command

using Action = std::function<int(const Config&, const Arguments&)>;

const std::map<std::string, Action, std::less<>>& actions() {
  static const std::map<std::string, Action, std::less<>> all{
      {"add", run_add},         {"list", run_list},
      {"show", run_show},       {"pause", run_pause},
      {"resume", run_pause},    {"replay", run_replay},
      {"rebuild", run_rebuild}, {"dead-letters", run_dead_letters}};
  return all;
}

int run(const Arguments& arguments) {
  const auto& words = arguments.words;
  const auto action = words.empty() ? actions().end() : actions().find(words[0]);
  if (action == actions().end()) {
    std::string names;
    for (const auto& [name, function] : actions()) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(fmt::format("consumers: say one of {}", names));
  }
  return action->second(load_config(arguments), arguments);
}

const Registration kRegistered(Command{
    .name = "consumers",
    .summary = "add, look after and repair those who follow the log",
    .synopsis =
        "add NAME [--mandatory] [--from head|start|SEQ] | add NAME --renew | list | show NAME | pause NAME | "
        "resume NAME | replay NAME (--from-seq N | --from-time T) | rebuild NAME | dead-letters NAME "
        "[list|retry|drop] [SEQ]",
    .details =
        "add makes a database role that may read the log and the events and write only its own offset, and "
        "prints a connection string for it; docs/log.md says what to do with it. The password is shown this "
        "one time.\n\n"
        "replay goes back (or forward) in the log; the running consumer takes it within a second. rebuild "
        "makes what the "
        "consumer derives anew from the events, beside what is there, and then follows the log again. Both "
        "show their "
        "progress; --no-wait returns at once.\n\n"
        "dead-letters are rows that kept failing and were passed over: list them, have them tried again, or "
        "drop them, "
        "all or the one with SEQ.",
    .options = {{"from", "WHERE",
                 "where a new consumer begins: start (what the log still holds), head, or after a seq"},
                {"mandatory", "", "retention of the log waits for it, up to log.retention_max"},
                {"renew", "", "a new password for a consumer that is there"},
                {"from-seq", "N", "replay: go on after this seq"},
                {"from-time", "TIME", "replay: repeat what the log says since then (2026-01-31T12:00:00Z)"},
                {"no-wait", "", "replay, rebuild: do not wait for the end"}},
    .words_max = 4,
    .run = run,
});

}  // namespace
}  // namespace todoke::app
