// Who follows the log.
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/consumer_access.hpp"
#include "app/consumers.hpp"
#include "app/effective_config.hpp"

namespace todoke::app {
namespace {

const std::string& named(const Arguments& arguments) {
  if (arguments.words.size() < 2 || (arguments.words.size() > 2 && arguments.words[0] != "dead-letters"))
    throw UsageError(fmt::format("consumers {}: name one consumer", arguments.words[0]));
  return arguments.words[1];
}

int run_add(const Config& config, const Arguments& arguments) {
  AddOptions options;
  options.name = named(arguments);
  check_consumer_name(options.name);
  options.mandatory = arguments.has("mandatory");
  options.renew = arguments.has("renew");
  options.from = arguments.option("from").value_or(options.from);
  if (options.renew && (options.mandatory || arguments.has("from"))) {
    throw UsageError("consumers add: --renew changes the password only, not --from and --mandatory");
  }
  with_running_database(
      config, [&](pg::Connection& connection) { return add_consumer(connection, config, options); },
      As::owner);
  return 0;
}

int run_list(const Config& config, const Arguments& arguments) {
  if (arguments.words.size() > 1)
    throw UsageError("consumers list takes no name; `consumers show NAME` does");
  with_running_database(config, [](pg::Connection& connection) { return print_consumers(connection); });
  return 0;
}

int run_show(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  with_running_database(config, [&](pg::Connection& connection) { return show_consumer(connection, name); });
  return 0;
}

int run_remove(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const bool with_owned = arguments.has("with-owned");
  with_running_database(
      config, [&](pg::Connection& connection) { return remove_consumer(connection, name, with_owned); },
      As::owner);
  return 0;
}

int run_pause(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const bool paused = arguments.words[0] == "pause";
  with_running_database(config,
                        [&](pg::Connection& connection) { return pause_consumer(connection, name, paused); });
  return 0;
}

int run_replay(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  with_running_database(
      config, [&](pg::Connection& connection) { return replay_consumer(connection, name, arguments); });
  return 0;
}

int run_rebuild(const Config& config, const Arguments& arguments) {
  const auto& name = named(arguments);
  const bool wait = !arguments.has("no-wait");
  with_running_database(config,
                        [&](pg::Connection& connection) { return rebuild_consumer(connection, name, wait); });
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
  with_running_database(
      config, [&](pg::Connection& connection) { return dead_letters(connection, name, action, seq); });
  return 0;
}

using ConsumerAction = std::function<int(const Config&, const Arguments&)>;

const std::map<std::string, ConsumerAction, std::less<>>& consumer_actions() {
  static const std::map<std::string, ConsumerAction, std::less<>> all{
      {"add", run_add},         {"list", run_list},
      {"show", run_show},       {"pause", run_pause},
      {"resume", run_pause},    {"replay", run_replay},
      {"rebuild", run_rebuild}, {"dead-letters", run_dead_letters},
      {"remove", run_remove}};
  return all;
}

int run_consumers(const Arguments& arguments) {
  const auto& words = arguments.words;
  const auto action = words.empty() ? consumer_actions().end() : consumer_actions().find(words[0]);
  if (action == consumer_actions().end()) {
    std::string names;
    for (const auto& [name, function] : consumer_actions()) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(fmt::format("consumers: say one of {}", names));
  }
  return action->second(command_config(arguments), arguments);
}

}  // namespace

Command consumers_command() {
  return {
      .name = "consumers",
      .summary = "add, look after and repair those who follow the log",
      .synopsis =
          "add NAME [--mandatory] [--from head|start|SEQ] | add NAME --renew | list | show NAME | pause NAME "
          "| "
          "resume NAME | replay NAME (--from-seq N | --from-time T) | rebuild NAME | dead-letters NAME "
          "[list|retry|drop] [SEQ] | remove NAME [--with-owned]",
      .details =
          "add makes a database role that may read the log and the events and write only its own offset, and "
          "prints a connection string for it; docs/log.md says what to do with it. The password is shown "
          "this "
          "one time.\n\n"
          "replay goes back (or forward) in the log; the running consumer takes it within a second. rebuild "
          "makes what the consumer derives anew from the events, beside what is there, and then follows the "
          "log "
          "again. Both show their progress and end with it; --no-wait returns at once. A replay of a "
          "consumer "
          "that is paused, and either where no node runs it, is kept and happens later: that is told, and "
          "the "
          "exit code is 1 unless --no-wait was said. Who follows the log from outside is not waited for.\n\n"
          "dead-letters are rows that kept failing and were passed over: list them, have them tried again, "
          "or "
          "drop them, all or the one with SEQ.\n\n"
          "remove takes away a consumer's role, its sessions, its offset and what was kept of it; what the "
          "role "
          "owns in the database only with --with-owned.",
      .options =
          {{"from",
            "WHERE",
            "where a new consumer begins: start (what the log still holds), head, or after a seq",
            {"add"}},
           {"mandatory", "", "retention of the log waits for it, up to log.retention_max", {"add"}},
           {"renew", "", "a new password for a consumer that is there", {"add"}},
           {"from-seq", "N", "go on after this seq", {"replay"}},
           {"from-time", "TIME", "repeat what the log says since then (2026-01-31T12:00:00Z)", {"replay"}},
           {"no-wait", "", "do not wait for the end", {"replay", "rebuild"}},
           {"with-owned", "", "also what the consumer's role owns, such as a schema", {"remove"}}},
      .words_max = 4,
      .run = run_consumers,
  };
}

}  // namespace todoke::app
