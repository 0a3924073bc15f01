#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"

namespace todoke::app {
namespace {

// The connection string without its password, which goes to PGPASSWORD: anybody can read the arguments of a
// process.
std::string without_password(const std::string& url) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), &error), &PQconninfoFree);
  if (!options) {
    PQfreemem(error);
    throw UserError("database.url or database.owner_url is no connection string that libpq understands");
  }
  std::string rest;
  for (const auto* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    if (std::string_view(option->keyword) == "password") {
      setenv("PGPASSWORD", option->val, 1);
      continue;
    }
    std::string quoted;
    for (const char* c = option->val; *c != '\0'; ++c) {
      if (*c == '\'' || *c == '\\') quoted.push_back('\\');
      quoted.push_back(*c);
    }
    rest += fmt::format("{}='{}' ", option->keyword, quoted);
  }
  return rest;
}

int run_psql(const Arguments& arguments) {
  const auto config = command_config(arguments, Tell::no);
  const auto database = database_in_use(config);
  refuse_stopped(config, database);
  setenv("PGAPPNAME", "todoke psql", 0);
  // So that the orders' tables need no schema in front; settings of the caller come later and win.
  const char* own = std::getenv("PGOPTIONS");
  const auto search = fmt::format("-c search_path=\"$user\",public,orders {}", own == nullptr ? "" : own);
  setenv("PGOPTIONS", search.c_str(), 1);
  const auto& url = database.owner_url.empty() ? database.url : database.owner_url;
  std::vector<std::string> words{"psql", "--dbname", without_password(url)};
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // ours is ignored, and that would be inherited
  execvp("psql", argv.data());
  throw UserError(
      fmt::format("psql can't be started ({}); install postgresql-client-15", std::strerror(errno)));
}

}  // namespace

Command psql_command() {
  return {
      .name = "psql",
      .summary = "open a shell on the database in use, embedded or not",
      .synopsis = "[--data_dir DIR] [--config FILE] [ARGUMENT OF psql…]",
      .details =
          "todoke psql -c 'select 1'. Keys of the configuration (--data_dir, --config, --database.url) "
          "come first;\neverything after them is passed on to psql. The shell has the rights of the "
          "owner of the tables "
          "(database.owner_url).\nThe search path names the schema orders.",
      .passes_arguments_on = true,
      .run = run_psql,
  };
}

}  // namespace todoke::app
