// Who may use the Admin API.
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include "admin/accounts.hpp"
#include "admin/passwords.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "base/wipe.hpp"

namespace todoke::app {
namespace {

const char* const kAdminUse =
    "admin: say create, reset, disable, enable or list, or token create, token list or token revoke";
constexpr std::size_t kTokenNameMax = 200;

// The terminal shows nothing of what is typed.
class NoEcho {
 public:
  NoEcho() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    auto silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    was_set_ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0;
  }
  ~NoEcho() {
    if (was_set_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;

 private:
  termios before_{};
  bool was_set_ = false;
};

std::string typed(const char* prompt) {
  std::fputs(prompt, stderr);
  std::string line;
  const NoEcho silent;
  if (!std::getline(std::cin, line)) throw UserError("no password was typed");
  std::fputs("\n", stderr);
  return line;
}

std::string password_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("--password-file: {} can't be read", path));
  // One more than may be, so that a longer one is refused.
  std::string password(admin::kPasswordBytesMax + 2, '\0');
  file.read(password.data(), static_cast<std::streamsize>(password.size()));
  password.resize(static_cast<std::size_t>(file.gcount()));
  if (password.ends_with('\n')) password.pop_back();
  if (password.ends_with('\r')) password.pop_back();
  return password;
}

std::string typed_twice() {
  if (isatty(STDIN_FILENO) == 0)
    throw UsageError("admin: name a --password-file; there is no terminal to ask for the password");
  auto password = typed("password: ");
  auto again = typed("again: ");
  const bool same = password == again;
  wipe(again);
  if (!same) throw UserError("the two passwords differ");
  return password;
}

std::string hash_of_new_password(const Arguments& arguments) {
  const auto file = arguments.option("password-file");
  auto password = file ? password_of_file(*file) : typed_twice();
  if (const auto checked = admin::check_password(password); !checked)
    throw UserError(checked.error().message);
  if (password.size() < admin::kPasswordBytesAdvised) {
    note(fmt::format("todoke: this password is short; {} characters or more are harder to guess",
                     admin::kPasswordBytesAdvised));
  }
  auto hash = admin::hash_password(password);
  wipe(password);
  return hash;
}

admin::AdminRole role_option(const Arguments& arguments) {
  const auto name = arguments.option("role").value_or("operator");
  const auto role = admin::admin_role(name);
  if (!role) throw UsageError(fmt::format("--role {}: say viewer, moderator or operator", name));
  return *role;
}

const std::string& name_in(const Arguments& arguments, std::size_t at) {
  if (arguments.words.size() != at + 1) throw UsageError("admin: name one administrator or token");
  return arguments.words[at];
}

void throw_refusal(const Expected<void>& done) {
  if (!done) throw UserError(done.error().message);
}

using AdminWork = std::function<Task<Expected<void>>(pg::Connection&)>;

int changed(const Arguments& arguments, const AdminWork& work, const std::string& done) {
  with_running_database(command_config(arguments), [&](pg::Connection& connection) -> Task<void> {
    throw_refusal(co_await work(connection));
  });
  print(done + "\n");
  return 0;
}

int create_administrator(const Arguments& arguments) {
  const auto& name = name_in(arguments, 1);
  if (!admin::is_admin_name(name))
    throw UserError(
        "a name has up to 64 of A-Z, a-z, 0-9, ., _, @ and -, and begins with a letter or a digit");
  const auto role = role_option(arguments);
  const auto hash = hash_of_new_password(arguments);
  return changed(
      arguments,
      [&](pg::Connection& connection) {
        return admin::create_administrator(connection, name, role, hash, operator_name(), answer_deadline());
      },
      fmt::format("{} may log in, as {}", name, to_string(role)));
}

int reset_administrator(const Arguments& arguments) {
  const auto& name = name_in(arguments, 1);
  const auto hash = hash_of_new_password(arguments);
  return changed(
      arguments,
      [&](pg::Connection& connection) {
        return admin::reset_password(connection, name, hash, operator_name(), answer_deadline());
      },
      fmt::format("{} has a new password; their sessions have ended", name));
}

int disable_administrator(const Arguments& arguments) {
  const auto& name = name_in(arguments, 1);
  const bool disabled = arguments.words[0] == "disable";
  return changed(
      arguments,
      [&](pg::Connection& connection) {
        return admin::set_disabled(connection, name, disabled, operator_name(), answer_deadline());
      },
      name + (disabled ? " can't log in any more; their sessions have ended" : " may log in again"));
}

Task<void> print_administrators(pg::Connection& connection) {
  const auto list = co_await admin::list_administrators(connection, answer_deadline());
  print(
      fmt::format("{:<32}  {:<10}  {:<8}  {:<28}  {}\n", "name", "role", "disabled", "since", "password of"));
  for (const auto& line : list) {
    print(fmt::format("{:<32}  {:<10}  {:<8}  {:<28}  {}\n", line.name, to_string(line.role),
                      line.is_disabled ? "yes" : "", line.created_at, line.password_changed_at));
  }
}

int list_administrators(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError("admin list takes no name");
  with_running_database(command_config(arguments),
                        [](pg::Connection& connection) { return print_administrators(connection); });
  return 0;
}

Task<void> make_token(pg::Connection& connection, const Arguments& arguments) {
  const auto& name = name_in(arguments, 2);
  if (name.empty() || name.size() > kTokenNameMax)
    throw UsageError(fmt::format("a token's name has up to {} bytes", kTokenNameMax));
  const auto made =
      co_await admin::create_token(connection, name, role_option(arguments),
                                   time_option(arguments, "expires"), operator_name(), answer_deadline());
  note(fmt::format("todoke: token {}; it is shown this one time", made.id));
  print(made.token + "\n");
}

Task<void> print_tokens(pg::Connection& connection) {
  const auto list = co_await admin::list_tokens(connection, answer_deadline());
  print(fmt::format("{:<16}  {:<24}  {:<10}  {:<28}  {:<28}  {}\n", "id", "name", "role", "last used",
                    "expires", "revoked"));
  for (const auto& line : list) {
    print(fmt::format("{:<16}  {:<24}  {:<10}  {:<28}  {:<28}  {}\n", line.id, line.name,
                      to_string(line.role), line.used_at.value_or("never"), line.expires_at.value_or("never"),
                      line.revoked_at.value_or("")));
  }
}

int run_token(const Arguments& arguments) {
  const auto verb = arguments.words.size() > 1 ? arguments.words[1] : std::string();
  if (verb == "revoke") {
    const auto& id = name_in(arguments, 2);
    return changed(
        arguments,
        [&](pg::Connection& connection) {
          return admin::revoke_token(connection, id, operator_name(), answer_deadline());
        },
        fmt::format("token {} is not valid any more", id));
  }
  if (verb != "create" && verb != "list") throw UsageError(kAdminUse);
  const auto config = command_config(arguments);
  with_running_database(config, [&](pg::Connection& connection) {
    return verb == "create" ? make_token(connection, arguments) : print_tokens(connection);
  });
  return 0;
}

int run_admin(const Arguments& arguments) {
  static const std::map<std::string, int (*)(const Arguments&), std::less<>> kVerbs{
      {"create", create_administrator},  {"reset", reset_administrator}, {"disable", disable_administrator},
      {"enable", disable_administrator}, {"list", list_administrators},  {"token", run_token}};
  const auto verb = arguments.words.empty() ? kVerbs.end() : kVerbs.find(arguments.words[0]);
  if (verb == kVerbs.end()) throw UsageError(kAdminUse);
  return verb->second(arguments);
}

}  // namespace

Command admin_command() {
  return {
      .name = "admin",
      .summary = "who may use the Admin API: administrators and tokens",
      .synopsis =
          "create NAME [--role R] [--password-file F] | reset NAME [--password-file F] | disable NAME | "
          "enable "
          "NAME | list | token create NAME [--role R] [--expires TIME] | token list | token revoke ID",
      .details =
          "An administrator logs in with a password; without --password-file it is asked for. A newline at "
          "the end of the file is left out. A token is for scripts (Authorization: Bearer …) and is shown "
          "once. A viewer sees everything, a moderator decides on requests, blocks and accounts, an operator "
          "(what --role is without being given) may do everything. docs/admin-api.md says the rest.",
      .options = {{"role", "ROLE", "viewer, moderator or operator", {"create", "token"}},
                  {"password-file", "FILE", "the password is its content", {"create", "reset"}},
                  {"expires", "TIME", "a token's end (2026-01-31T12:00:00Z)", {"token"}}},
      .words_max = 3,
      .run = run_admin,
  };
}

}  // namespace todoke::app
