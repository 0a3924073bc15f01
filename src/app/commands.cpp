#include "app/commands.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "app/keys.hpp"
#include "base/log.hpp"

namespace todoke::app {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

int report_failure(const std::string& what, int code) {
  log::flush();
  note("todoke: " + what);
  return code;
}

std::string overview() {
  std::string text =
      "todoke: what it accepts, it delivers, once per key, in order, and can prove it.\n\nUsage: todoke "
      "COMMAND [OPTION…]\n\nCommands:\n";
  for (const auto& [name, command] : commands()) text += fmt::format("  {:<10} {}\n", name, command.summary);
  text +=
      "\nEvery configuration key is an option too: --server.listen 127.0.0.1:8080.\n"
      "`todoke COMMAND --help` tells more; `todoke config` explains every key.\n";
  return text;
}

int show_help(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(overview().c_str(), stderr);
    return kExitUsage;
  }
  const auto command = words.size() > 1 ? commands().find(words[1]) : commands().end();
  print(command == commands().end() ? overview() : help_text(command->second));
  return 0;
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    return show_help(words);
  }
  const std::string name = words[0] == "--version" ? "version" : words[0];
  const auto found = commands().find(name);
  if (found == commands().end()) {
    return report_failure(fmt::format("'{}' is no command; `todoke help` lists them", name), kExitUsage);
  }
  const auto& command = found->second;
  try {
    const auto arguments = parse_arguments(command, schema(), {words.begin() + 1, words.end()});
    if (!arguments.help) return command.run(arguments);
    print(help_text(command));
    return 0;
  } catch (const UsageError& error) {
    return report_failure(fmt::format("{}; see `todoke {} --help`", error.what(), name), kExitUsage);
  }
}

}  // namespace

const std::map<std::string_view, Command>& commands() {
  static const std::map<std::string_view, Command> kByName = [] {
    std::map<std::string_view, Command> by_name;
    for (auto* make :
         {admin_command,   audit_command,     backfill_command, backup_command,    block_command,
          config_command,  consumers_command, doctor_command,   export_command,    import_command,
          key_command,     migrate_command,   orders_command,   p2p_command,       psql_command,
          publish_command, query_command,     restore_command,  retention_command, run_command,
          stats_command,   sync_command,      topic_command,    up_command,        version_command}) {
      auto command = make();
      by_name.emplace(command.name, std::move(command));
    }
    return by_name;
  }();
  return kByName;
}

int run_program(const std::vector<std::string>& words) {
  std::signal(SIGPIPE, SIG_IGN);
  int code = kExitFailure;
  try {
    code = dispatch(words);
  } catch (const std::exception& error) {
    code = report_failure(error.what(), kExitFailure);
  }
  log::flush();
  return code;
}

}  // namespace todoke::app
