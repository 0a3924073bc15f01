#include <cstdio>

#include <fmt/format.h>

#include "app/command.hpp"
#include "base/json_writer.hpp"

namespace todoke::app {
namespace {

std::string explained(const Config& config, std::string_view name) {
  const auto& spec = *config.schema().find(name);
  const auto value = config.shown(name);
  auto text = fmt::format("{} = {}\n    from {}\n", name, value.empty() ? "\"\"" : value,
                          config.setting(name).source);
  text += fmt::format("    {}\n    allowed: {}; default: {}", spec.meaning, allowed_values(spec),
                      spec.fallback.empty() ? "empty" : spec.fallback);
  if (!spec.unit.empty()) text += fmt::format("; unit of a bare number: {}", spec.unit);
  if (spec.secret) text += "; secret";
  if (spec.live) text += "; live";
  if (spec.reread) text += "; SIGHUP reads it again";
  text += fmt::format("\n    variable: {}", environment_name(name));
  if (!spec.environment.empty()) text += fmt::format(" or {}", spec.environment);
  return text + "\n";
}

std::string as_json(const Config& config, std::string_view only) {
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, spec] : config.schema().keys()) {
    if (!only.empty() && name != only) continue;
    json.key(name).begin_object();
    json.member("value", config.shown(name)).member("source", config.setting(name).source).end_object();
  }
  json.end_object();
  return std::move(json).text() + "\n";
}

int run(const Arguments& arguments) {
  if (arguments.has("markdown")) {
    std::fputs(configuration_page(schema()).c_str(), stdout);
    return 0;
  }
  const auto config = load_config(arguments);
  const auto only = arguments.words.empty() ? std::string() : arguments.words[0];
  if (!only.empty() && config.schema().find(only) == nullptr) {
    throw UserError(fmt::format("{}: no such key; `todoke config` lists them all", only));
  }
  if (arguments.has("json")) {
    std::fputs(as_json(config, only).c_str(), stdout);
    return 0;
  }
  if (!only.empty()) {
    std::fputs(explained(config, only).c_str(), stdout);
    return 0;
  }
  for (const auto& [name, spec] : config.schema().keys()) {
    if (arguments.has("short")) {
      std::fputs(
          fmt::format("{} = {}  # {}\n", name, config.shown(name), config.setting(name).source).c_str(),
          stdout);
    } else {
      std::fputs((explained(config, name) + "\n").c_str(), stdout);
    }
  }
  return 0;
}

const Registration kRegistered(Command{
    .name = "config",
    .summary = "show the effective configuration, where each value came from, and what every key means",
    .synopsis = "[KEY] [--short | --json | --markdown]",
    .details = "Secrets are masked. With KEY, only that one.",
    .options = {{"short", "", "one line for each key"},
                {"json", "", "values and sources as JSON"},
                {"markdown", "", "the page docs/configuration.md"}},
    .words_max = 1,
    .run = run,
});

}  // namespace
}  // namespace todoke::app
