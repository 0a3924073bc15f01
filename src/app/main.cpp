#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "app/command.hpp"
#include "base/log.hpp"

namespace todoke::app {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

int fail(const char* what, int code) {
  log::flush();
  std::fprintf(stderr, "todoke: %s\n", what);
  return code;
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
    const bool asked = !words.empty();
    if (words.size() > 1 && commands().contains(words[1])) {
      std::fputs(help_text(commands().at(words[1])).c_str(), stdout);
      return 0;
    }
    std::fputs(help_text().c_str(), asked ? stdout : stderr);
    return asked ? 0 : kExitUsage;
  }
  const std::string name = words[0] == "--version" ? "version" : words[0];
  const auto found = commands().find(name);
  if (found == commands().end()) {
    return fail(("'" + name + "' is no command; `todoke help` lists them").c_str(), kExitUsage);
  }
  const auto& command = found->second;
  try {
    const auto arguments = parse_arguments(command, schema(), {words.begin() + 1, words.end()});
    if (arguments.help) {
      std::fputs(help_text(command).c_str(), stdout);
      return 0;
    }
    return command.run(arguments);
  } catch (const UsageError& error) {
    return fail((std::string(error.what()) + "; see `todoke " + name + " --help`").c_str(), kExitUsage);
  }
}

}  // namespace
}  // namespace todoke::app

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  int code = todoke::app::kExitFailure;
  try {
    code = todoke::app::dispatch({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    code = todoke::app::fail(error.what(), todoke::app::kExitFailure);
  }
  todoke::log::flush();
  return code;
}
