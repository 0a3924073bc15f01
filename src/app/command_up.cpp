#include "app/command.hpp"
#include "app/node.hpp"
#include "app/role.hpp"

namespace todoke::app {
namespace {

int up(const Arguments& arguments) {
  const auto read = [&arguments] { return config_of_up(load_config(arguments)); };
  return run_node(read(), {.roles = all_roles(), .banner = true, .read_config = read});
}

int run(const Arguments& arguments) {
  const auto asked = arguments.options.find("roles");
  auto names = asked == arguments.options.end() ? all_roles() : parse_roles(asked->second);
  const auto read = [&arguments] { return load_config(arguments); };
  return run_node(read(), {.roles = std::move(names), .banner = false, .read_config = read});
}

const Registration kUp(Command{
    .name = "up",
    .summary = "run everything in one process, on an embedded database unless one is configured",
    .synopsis = "",
    .details =
        "Prints what runs, where its data is and what to open. Ctrl-C stops everything, the database too.",
    .run = up,
});

const Registration kRun(Command{
    .name = "run",
    .summary = "run some roles of the node; for several processes or hosts on one database",
    .synopsis = "[--roles a,b,c]",
    .details = "Without --roles: all of them. `none` runs the listeners with health and metrics alone.",
    .options = {{"roles", "a,b,c", "the roles of this process"}},
    .run = run,
});

}  // namespace
}  // namespace todoke::app
