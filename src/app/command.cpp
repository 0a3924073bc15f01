#include "app/command.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/keys.hpp"
#include "base/log.hpp"

namespace todoke::app {
namespace {

std::map<std::string_view, Command>& registry() {
  static std::map<std::string_view, Command> instance;
  return instance;
}

const Option* find_option(const Command& command, std::string_view name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const Option& o) { return o.name == name; });
  return found == command.options.end() ? nullptr : &*found;
}

// A switch by its letter, such as -q.
const Option* find_switch(const Command& command, std::string_view word) {
  if (word.size() != 2 || word[0] != '-') return nullptr;
  const auto found = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const Option& o) { return o.letter != '\0' && o.letter == word[1]; });
  return found == command.options.end() ? nullptr : &*found;
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace

Registration::Registration(Command command) {
  const auto name = command.name;
  registry().emplace(name, std::move(command));
}

const std::map<std::string_view, Command>& commands() {
  return registry();
}

Arguments parse_arguments(const Command& command, const Schema& schema, std::vector<std::string> given) {
  Arguments arguments;
  if (command.passes_arguments_on) {
    arguments.help = given.size() == 1 && (given[0] == "--help" || given[0] == "-h");
    // Our own options stand before those of the other program, which has none of these names.
    std::size_t own = 0;
    while (own + 1 < given.size() && given[own].starts_with("--")) {
      const auto name = given[own].substr(2);
      if (name == "config") {
        arguments.config_file = given[own + 1];
      } else if (schema.accepts(name)) {
        arguments.keys.emplace_back(name, given[own + 1]);
      } else {
        break;
      }
      own += 2;
    }
    arguments.words.assign(given.begin() + static_cast<std::ptrdiff_t>(own), given.end());
    return arguments;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::string_view word = given[i];
    if (word == "-h" || word == "--help") {
      arguments.help = true;
      continue;
    }
    if (const auto* option = find_switch(command, word); option != nullptr) {
      arguments.options[std::string(option->name)] = "";
      continue;
    }
    if (!word.starts_with("--")) {
      arguments.words.emplace_back(word);
      continue;
    }
    word.remove_prefix(2);
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const auto* option = find_option(command, name);
    if (option != nullptr && option->value.empty()) {
      if (equals != std::string_view::npos) throw UsageError(fmt::format("--{} takes no value", name));
      arguments.options[std::string(name)] = "";
      continue;
    }
    if (option == nullptr && name != "config" && !schema.accepts(name)) {
      throw UsageError(fmt::format("--{}: no such option or key", name));
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < given.size()) {
      value = given[++i];
    } else {
      throw UsageError(fmt::format("--{} needs a value", name));
    }
    if (option != nullptr) {
      arguments.options[std::string(name)] = std::move(value);
    } else if (name == "config") {
      arguments.config_file = std::move(value);
    } else {
      arguments.keys.emplace_back(std::string(name), std::move(value));
    }
  }
  if (!arguments.help && arguments.words.size() > command.words_max) {
    throw UsageError(fmt::format("'{}' is one word too many", arguments.words[command.words_max]));
  }
  return arguments;
}

Config load_config(const Arguments& arguments) {
  Config config(schema());
  const char* from_environment = std::getenv("TODOKE_CONFIG");
  if (arguments.config_file) {
    config.load_file(*arguments.config_file);
  } else if (from_environment != nullptr) {
    config.load_file(from_environment);
  } else if (std::filesystem::exists("todoke.toml")) {
    config.load_file("todoke.toml");
  }
  config.load_environment(environment());
  for (const auto& [key, value] : arguments.keys) config.set_flag(key, value);
  return config;
}

void configure_logs(const Config& config) {
  const auto& format = config.get(keys::kLogFormat);
  const bool human = format == "human" || (format == "auto" && isatty(STDERR_FILENO) == 1);
  log::configure(log::level_from(config.get(keys::kLogLevel)),
                 human ? log::Format::human : log::Format::json);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void note(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

std::string help_text() {
  std::string text =
      "todoke: what it accepts, it delivers, once per key, in order, and can prove it.\n\nUsage: todoke "
      "COMMAND [OPTION…]\n\nCommands:\n";
  for (const auto& [name, command] : commands()) text += fmt::format("  {:<10} {}\n", name, command.summary);
  text +=
      "\nEvery configuration key is an option too: --server.listen 127.0.0.1:8080.\n"
      "`todoke COMMAND --help` tells more; `todoke config` explains every key.\n";
  return text;
}

std::string help_text(const Command& command) {
  auto text = fmt::format("{}\n\nUsage: todoke {} {}\n", command.summary, command.name, command.synopsis);
  if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
  if (command.passes_arguments_on) return text;
  text += "\nOptions:\n";
  for (const auto& option : command.options) {
    const auto letter = option.letter == '\0' ? std::string() : fmt::format("-{}, ", option.letter);
    text += fmt::format("  {:<22} {}\n", fmt::format("{}--{} {}", letter, option.name, option.value),
                        option.help);
  }
  text += fmt::format("  {:<22} {}\n", "--config FILE", "read this TOML file instead of ./todoke.toml");
  text += fmt::format("  {:<22} {}\n", "--KEY VALUE", "set a configuration key; `todoke config` lists them");
  text += fmt::format("  {:<22} {}\n", "--help", "this text");
  return text;
}

}  // namespace todoke::app
