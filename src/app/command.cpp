#include "app/command.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <pwd.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/keys.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "base/utf8.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kAnswerMax(30);
constexpr const char* kFileHere = "todoke.toml";
// What a SystemTime holds: the year 2261.
constexpr std::int64_t kUnixSecondsMax = 9'200'000'000;

bool asks_for_help(std::string_view word) {
  return word == "-h" || word == "--help";
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

// --config and keys of the schema; false for another name.
bool store_setting(Arguments& arguments, const Schema& schema, std::string_view name, std::string value) {
  if (name == "config") {
    arguments.config_file = std::move(value);
  } else if (schema.accepts(name)) {
    arguments.keys.emplace_back(name, std::move(value));
  } else {
    return false;
  }
  return true;
}

// Our own settings stand before the arguments of the other program, which has no options of these names.
Arguments parse_passed_on(const Schema& schema, const std::vector<std::string>& given) {
  Arguments arguments;
  arguments.help = given.size() == 1 && asks_for_help(given[0]);
  std::size_t own = 0;
  while (own + 1 < given.size() && given[own].starts_with("--") &&
         store_setting(arguments, schema, given[own].substr(2), given[own + 1])) {
    own += 2;
  }
  arguments.words.assign(given.begin() + static_cast<std::ptrdiff_t>(own), given.end());
  return arguments;
}

// `given[at]` is --name, --name=value or --name value; returns the index of the last word that it used.
std::size_t parse_option(const Command& command, const Schema& schema, const std::vector<std::string>& given,
                         std::size_t at, Arguments& arguments) {
  const auto word = std::string_view(given[at]).substr(2);
  const auto equals = word.find('=');
  const std::string name(word.substr(0, equals));
  const auto* option = find_option(command, name);
  if (option == nullptr && name != "config" && !schema.accepts(name)) {
    throw UsageError(fmt::format("--{}: no such option or key", name));
  }
  std::string value;
  if (option != nullptr && option->value.empty()) {
    if (equals != std::string_view::npos) throw UsageError(fmt::format("--{} takes no value", name));
  } else if (equals != std::string_view::npos) {
    value = word.substr(equals + 1);
  } else if (at + 1 < given.size()) {
    value = given[++at];
  } else {
    throw UsageError(fmt::format("--{} needs a value", name));
  }
  if (option != nullptr) {
    arguments.given.emplace_back(name, value);
    arguments.options[name] = std::move(value);
  } else {
    store_setting(arguments, schema, name, std::move(value));
  }
  return at;
}

// The database takes UTF-8 only, and so do JSON and the log.
void refuse_broken_text(std::string_view word) {
  if (is_utf8(word)) return;
  std::string shown;
  for (const char c : word)
    shown += static_cast<signed char>(c) >= ' ' ? std::string(1, c)
                                                : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  throw UsageError(fmt::format("'{}' is not UTF-8", shown));
}

// Options of another subcommand would be ignored here: `orders halt --status pending` would halt all.
void refuse_options_of_others(const Command& command, const Arguments& arguments) {
  if (arguments.words.empty()) return;
  const auto& verb = arguments.words[0];
  for (const auto& [name, value] : arguments.options) {
    const auto& of = find_option(command, name)->of;
    if (of.empty() || std::find(of.begin(), of.end(), verb) != of.end()) continue;
    throw UsageError(
        fmt::format("{} {} takes no --{} (it is for: {})", command.name, verb, name, fmt::join(of, ", ")));
  }
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::string option_line(std::string_view option, std::string_view help) {
  return fmt::format("  {:<22} {}\n", option, help);
}

}  // namespace

std::optional<std::string> Arguments::option(std::string_view name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [option, value] : given) {
    if (option == name) values.push_back(value);
  }
  return values;
}

Arguments parse_arguments(const Command& command, const Schema& schema,
                          const std::vector<std::string>& given) {
  if (command.passes_arguments_on) return parse_passed_on(schema, given);
  for (const auto& word : given) refuse_broken_text(word);
  Arguments arguments;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (asks_for_help(given[i])) {
      arguments.help = true;
    } else if (const auto* option = find_switch(command, given[i]); option != nullptr) {
      arguments.options[std::string(option->name)] = "";
    } else if (given[i].starts_with("--")) {
      i = parse_option(command, schema, given, i, arguments);
    } else {
      arguments.words.push_back(given[i]);
    }
  }
  if (arguments.help) return arguments;
  if (arguments.words.size() > command.words_max) {
    throw UsageError(fmt::format("'{}' is one word too many", arguments.words[command.words_max]));
  }
  refuse_options_of_others(command, arguments);
  return arguments;
}

std::string help_text(const Command& command) {
  auto text = fmt::format("{}\n\nUsage: todoke {} {}\n", command.summary, command.name, command.synopsis);
  if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
  if (command.passes_arguments_on) return text;
  text += "\nOptions:\n";
  for (const auto& option : command.options) {
    const auto letter = option.letter == '\0' ? std::string() : fmt::format("-{}, ", option.letter);
    text += option_line(fmt::format("{}--{} {}", letter, option.name, option.value),
                        option.of.empty() ? std::string(option.help)
                                          : fmt::format("{} ({})", option.help, fmt::join(option.of, ", ")));
  }
  text +=
      option_line("--config FILE", "read this TOML file instead of ./todoke.toml (which root never reads)");
  text += option_line("--KEY VALUE", "set a configuration key; `todoke config` lists them");
  return text + option_line("--help", "this text");
}

Config load_config(const Arguments& arguments) {
  static bool told = false;  // it is read again at SIGHUP
  Config config(schema());
  const char* from_environment = std::getenv("TODOKE_CONFIG");
  if (arguments.config_file) {
    config.load_file(*arguments.config_file);
  } else if (from_environment != nullptr) {
    config.load_file(from_environment);
  } else if (std::filesystem::exists(kFileHere)) {
    // A user who may write to the folder that root happens to be in must not configure a node of root.
    if (geteuid() != 0) {
      config.load_file(kFileHere);
    } else if (!std::exchange(told, true)) {
      note(fmt::format("todoke: {0} is ignored: as root only a file that is named counts (--config {0})",
                       kFileHere));
    }
  }
  config.load_environment(environment());
  for (const auto& [key, value] : arguments.keys) config.set_flag(key, value);
  return config;
}

std::optional<SystemTime> time_option(const Arguments& arguments, std::string_view name) {
  const auto text = arguments.option(name);
  if (!text) return std::nullopt;
  if (const auto time = parse_timestamp(*text)) return time;
  if (const auto midnight = parse_timestamp(*text + "T00:00:00Z")) return midnight;
  const auto seconds = parse_number<std::int64_t>(*text);
  if (seconds && *seconds <= kUnixSecondsMax && *seconds >= -kUnixSecondsMax)
    return SystemTime(std::chrono::seconds(*seconds));
  throw UsageError(fmt::format("--{} {}: say 2026-01-31T12:00:00Z, 2026-01-31 or unix seconds", name, *text));
}

std::optional<std::int64_t> number_option(const Arguments& arguments, std::string_view name,
                                          std::int64_t least, std::int64_t most) {
  const auto text = arguments.option(name);
  if (!text) return std::nullopt;
  const auto number = parse_number<std::int64_t>(*text);
  if (number && *number >= least && *number <= most) return number;
  throw UsageError(fmt::format("--{} {}: say a whole number from {} to {}", name, *text, least, most));
}

Deadline answer_deadline() {
  return Deadline::after(kAnswerMax);
}

std::string operator_name() {
  std::array<char, 4'096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  return fmt::format("operator:{}", found != nullptr ? std::string(entry.pw_name) : std::to_string(getuid()));
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void note(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

}  // namespace todoke::app
