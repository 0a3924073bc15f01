// A subcommand of `todoke`. Adding one is adding a file that makes a `Registration`; help and dispatch
// follow.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"

namespace todoke::app {

struct Option {
  std::string_view name;   // without dashes
  std::string_view value;  // what stands for its value in the help; empty: a switch
  std::string_view help;
  char letter = '\0';  // -q for --quiet; switches only
};

// What stood on the command line after the command's name.
struct Arguments {
  std::vector<std::string> words;                           // neither option nor key
  std::map<std::string, std::string, std::less<>> options;  // the command's own; a switch has an empty value
  std::vector<std::pair<std::string, std::string>> keys;    // configuration keys, in order
  std::optional<std::string> config_file;                   // --config
  bool help = false;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
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

class Registration {
 public:
  explicit Registration(Command command);
};

// By name.
const std::map<std::string_view, Command>& commands();

// Wrong use of the command line: shown with a pointer to --help, exit code 2.
class UsageError : public UserError {
 public:
  using UserError::UserError;
};

Arguments parse_arguments(const Command& command, const Schema& schema, std::vector<std::string> given);

// The keys of all rooms.
const Schema& schema();

// Defaults, file, environment and flags, in that order. The file is --config, else TODOKE_CONFIG, else
// todoke.toml in the current folder where there is one.
Config load_config(const Arguments& arguments);

// Level and format of the logs, for commands that write any.
void configure_logs(const Config& config);

// For the person at the terminal: the answer to stdout as it is and at once, a remark as a line to stderr.
void print(const std::string& text);
void note(const std::string& text);

std::string help_text();
std::string help_text(const Command& command);

}  // namespace todoke::app
