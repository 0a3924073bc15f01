// What a subcommand of `todoke` is, how its command line is read, and what commands have in common.
// app/commands.hpp lists them all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"

namespace todoke::app {

struct Option {
  std::string_view name;   // without dashes
  std::string_view value;  // what stands for its value in the help; empty: a switch
  std::string_view help;
  // The subcommands (first words) that take it; another one is refused with it. Empty: whatever the words.
  std::vector<std::string_view> of = {};
  char letter = '\0';  // -q for --quiet; switches only
};

// What stood on the command line after the command's name.
struct Arguments {
  std::vector<std::string> words;                           // neither option nor key
  std::map<std::string, std::string, std::less<>> options;  // the command's own; a switch has an empty value
  std::vector<std::pair<std::string, std::string>>
      given;  // the same options as they stood, also repeated ones
  std::vector<std::pair<std::string, std::string>> keys;  // configuration keys, in order
  std::optional<std::string> config_file;                 // --config
  bool help = false;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  // The value of an option that was given.
  [[nodiscard]] std::optional<std::string> option(std::string_view name) const;
  // All values of an option that may be repeated, in order.
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
};

struct Command {
  std::string_view name;
  std::string_view summary;       // one line
  std::string_view synopsis;      // after "todoke NAME ", such as "[--roles a,b]"
  std::string_view details = {};  // more for --help
  std::vector<Option> options = {};
  std::size_t words_max = 0;
  // All arguments go to `run` as words, unread (for commands that pass them on to another program).
  bool passes_arguments_on = false;
  // Returns the exit code. Throws UserError for what the person at the terminal can mend.
  std::function<int(const Arguments&)> run;
};

// Wrong use of the command line: shown with a pointer to --help, exit code 2.
class UsageError : public UserError {
 public:
  using UserError::UserError;
};

// Throws UsageError for what neither the command nor the schema knows, and for options of another subcommand.
Arguments parse_arguments(const Command& command, const Schema& schema,
                          const std::vector<std::string>& given);
std::string help_text(const Command& command);

// Defaults, file, environment and flags, in that order. The file is --config, else TODOKE_CONFIG, else
// todoke.toml in the current folder where there is one and the caller is not root.
Config load_config(const Arguments& arguments);

// The time of an option that was given: 2026-01-31T12:00:00Z (any offset), 2026-01-31 or unix seconds. Throws
// UsageError for another text.
std::optional<SystemTime> time_option(const Arguments& arguments, std::string_view name);

// The number of an option that was given, from `least` to `most`. Throws UsageError for another text.
std::optional<std::int64_t> number_option(const Arguments& arguments, std::string_view name,
                                          std::int64_t least, std::int64_t most);

// How long a command waits for an answer of the database.
Deadline answer_deadline();

// Who made a change, for the audit: the user of the operating system, as operator:<name>.
std::string operator_name();

// For the person at the terminal: the answer to stdout as it is and at once, a remark as a line to stderr.
void print(const std::string& text);
void note(const std::string& text);

}  // namespace todoke::app
