// `todoke up` and `todoke run`: a node.
#include <utility>

#include "app/commands.hpp"
#include "app/exposure.hpp"
#include "app/node.hpp"
#include "app/roles.hpp"

namespace todoke::app {
namespace {

int run_everything(const Arguments& arguments) {
  const auto read = [&arguments] { return config_of_up(load_config(arguments)); };
  auto config = read();
  if (const auto checked = check_broker_of_up(config); !checked) throw UserError(checked.error().message);
  return run_node(std::move(config),
                  {.roles = all_roles(), .banner = true, .loopback = true, .read_config = read});
}

int run_roles(const Arguments& arguments) {
  const auto asked = arguments.option("roles");
  auto names = asked ? parse_roles(*asked) : all_roles();
  const auto read = [&arguments] { return load_config(arguments); };
  return run_node(read(),
                  {.roles = std::move(names), .banner = false, .loopback = false, .read_config = read});
}

}  // namespace

Command up_command() {
  return {
      .name = "up",
      .summary = "run everything in one process, on an embedded database unless one is configured",
      .synopsis = "",
      .details =
          "Prints what runs, where its data is and what to open. Ctrl-C stops everything, the database too. "
          "Orders go to "
          "the paper broker; with another broker a node is started with `todoke run`.",
      .run = run_everything,
  };
}

Command run_command() {
  return {
      .name = "run",
      .summary = "run some roles of the node; for several processes or hosts on one database",
      .synopsis = "[--roles a,b,c]",
      .details = "Without --roles: all of them. `none` runs the listeners with health and metrics alone.",
      .options = {{"roles", "a,b,c", "the roles of this process"}},
      .run = run_roles,
  };
}

}  // namespace todoke::app
