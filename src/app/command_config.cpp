// The configuration in force: shown with where each value came from, and changed in the database's layer.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "admin/service_configs.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "app/instance_file.hpp"
#include "app/keys.hpp"
#include "base/json_writer.hpp"
#include "embedded/folder.hpp"
#include "net/config.hpp"
#include "relay/retention.hpp"

namespace todoke::app {
namespace {

constexpr std::int32_t kHistoryMax = 1'000;
// Others who change the same service at the same time.
constexpr int kTriesMax = 10;

std::string visible(const std::string& value) {
  return value.empty() ? std::string("\"\"") : value;
}

std::string visible(const std::optional<std::string>& value) {
  return value ? visible(*value) : std::string("no value");
}

const KeySpec& spec_of(std::string_view key) {
  const auto* spec = schema().find(key);
  if (const auto* removed = schema().find_removed(key))
    throw UserError(fmt::format("{} is no longer a key: {}", key, removed->instead));
  if (spec == nullptr) throw UserError(fmt::format("{}: no such key; `todoke config` lists them all", key));
  return *spec;
}

// What is shown: the configuration of a node that runs on the data folder of this shell, or its own.
struct View {
  Config config;
  std::vector<Instance> nodes;

  // What keeps the database from changing a live key; empty: nothing.
  [[nodiscard]] std::string pin_of(std::string_view key) const {
    if (!schema().find(key)->live) return {};
    const auto pin = pinned_by(nodes, key);
    return pin.empty() && config.is_pinned(key) ? config.setting(key).source : pin;
  }
};

std::string explained(const View& view, std::string_view name) {
  const auto& config = view.config;
  const auto& spec = *config.schema().find(name);
  const auto pin = view.pin_of(name);
  auto text =
      fmt::format("{} = {}\n    from {}\n", name, visible(config.shown(name)), config.setting(name).source);
  if (!pin.empty()) text += fmt::format("    pinned by {}\n", pin);
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

std::string as_json(const View& view, std::string_view only) {
  const auto& config = view.config;
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, spec] : config.schema().keys()) {
    if (!only.empty() && name != only) continue;
    json.key(name).begin_object();
    json.member("value", config.shown(name)).member("source", config.setting(name).source);
    json.member("live", spec->live).member("pinned", !view.pin_of(name).empty()).end_object();
  }
  json.end_object();
  return std::move(json).text() + "\n";
}

// `shown` with the values of the database where there is one; says on stderr when it can't be asked.
Config with_live_values(const Arguments& arguments, const Config& shown) {
  auto live = shown;
  try {
    const auto config = command_config(arguments, Tell::no);
    const auto cluster = embedded::layout_of(data_folder(config)).cluster;
    if (database_in_use(config).embedded && !std::filesystem::exists(cluster)) return shown;
    with_running_database(config, [&](pg::Connection& connection) -> Task<void> {
      live = co_await with_database_layer(connection, shown);
    });
  } catch (const std::exception& error) {
    note(fmt::format("todoke: without the database's values: {}", error.what()));
  }
  return live;
}

// Beside a running node, that node's: with --config, what a start with that file would have.
View config_view(const Arguments& arguments) {
  const auto own = load_config(arguments);
  auto nodes = running_instances(data_folder(own));
  if (arguments.config_file) return {with_live_values(arguments, own), std::move(nodes)};
  auto shown = node_configs(own, nodes).front();
  for (const auto& [key, value] : arguments.keys) shown.set_flag(key, value);
  if (nodes.size() > 1)
    note(fmt::format("todoke: {} nodes run here; these are the values of pid {}", nodes.size(),
                     nodes.front().pid));
  return {with_live_values(arguments, shown), std::move(nodes)};
}

int show_config(const Arguments& arguments) {
  const auto only = arguments.words.empty() ? std::string() : arguments.words[0];
  if (!only.empty()) spec_of(only);
  const auto view = config_view(arguments);
  for (const auto& removed : view.config.removed_settings()) note("todoke: " + removed.text);
  if (arguments.has("json")) {
    print(as_json(view, only));
    return 0;
  }
  if (!only.empty()) {
    print(explained(view, only));
    return 0;
  }
  for (const auto& [name, spec] : schema().keys()) {
    const auto& source = view.config.setting(name).source;
    print(arguments.has("short") ? fmt::format("{} = {}  # {}{}\n", name, view.config.shown(name), source,
                                               view.pin_of(name).empty() ? "" : ", pinned")
                                 : explained(view, name) + "\n");
  }
  return 0;
}

// A key that the database's layer does not take.
void refuse_foreign(Config config, const std::string& key) {
  const auto* spec = schema().find(key);
  const auto taken = config.set_database(key, spec == nullptr ? "" : spec->fallback, "database");
  if (!taken) throw UserError(taken.error().message);
}

// Refuses what can't be changed in the database by any caller.
void refuse_unchangeable(const Config& config, const std::string& key) {
  refuse_foreign(config, key);
  const auto here = config.is_pinned(key) ? config.setting(key).source : std::string();
  const auto pin = here.empty() ? pinned_by(running_instances(data_folder(config)), key) : here;
  if (!pin.empty()) {
    throw UserError(
        fmt::format("{} is pinned by {}, which wins over the database: change it there", key, pin));
  }
}

// The value in force and, where it is not the database's, whose it is.
std::string described(const Config& config, const std::string& key,
                      const std::optional<std::string>& stored) {
  if (schema().find(key) == nullptr || config.setting(key).layer == Layer::database) return visible(stored);
  return fmt::format("{} ({})", visible(config.shown(key)), config.setting(key).source);
}

// Checks the change against every node that runs here, and gives what the first of them makes of it.
admin::ConfigTrial tried(const std::vector<Config>& nodes, const std::vector<ConfigRow>& rows,
                         const std::string& key, const std::optional<std::string>& value) {
  auto first = admin::check_config_change(nodes.front(), rows, key, value);
  for (std::size_t i = 1; i < nodes.size(); ++i) admin::check_config_change(nodes[i], rows, key, value);
  return first;
}

// Topics may be kept longer than the node's own periods say; the database knows.
Task<void> refuse_periods(pg::Connection& connection, const admin::ConfigTrial& trial) {
  const auto before = relay::retention_periods_from(trial.before);
  const auto after = relay::retention_periods_from(trial.after);
  if (before == after) co_return;
  const auto was =
      co_await relay::period_problems(connection, before, std::nullopt, std::nullopt, answer_deadline());
  const auto problems =
      co_await relay::period_problems(connection, after, std::nullopt, std::nullopt, answer_deadline());
  if (const auto more = relay::new_problems(was, problems); !more.empty())
    throw UserError(relay::period_text(more));
}

// What the person who set it would not expect.
void tell_surprises(const admin::ConfigTrial& trial, const std::string& key,
                    const std::optional<std::string>& value) {
  for (const auto& problem : trial.problems) note("todoke: refused: " + problem);
  if (!value) return;
  if (trial.after.setting(key).layer != Layer::database)
    note(fmt::format("todoke: {} has no effect until that is mended", key));
  if (key == net::keys::kRates.spec.name && *value == "off")
    note("todoke: every rate limit is lifted now; only for benchmarks and trusted networks");
}

Task<void> change_key(pg::Connection& connection, const std::vector<Config>& nodes, std::string key,
                      std::optional<std::string> value) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const auto deadline = answer_deadline();
    const auto rows = co_await admin::read_service_configs(connection, deadline);
    // An entry that was written by hand can be removed, whatever and wherever it is.
    const auto stored = admin::stored_value(rows, key, !value);
    if (!value && !stored.value) refuse_foreign(nodes.front(), key);
    if (stored.value == value) {
      print(value ? fmt::format("{} is {} already (version {})\n", key, visible(*value), stored.version)
                  : fmt::format("{} has no value in the database\n", key));
      co_return;
    }
    const auto trial = tried(nodes, rows, key, value);
    co_await refuse_periods(connection, trial);
    admin::ConfigChange asked{stored.service, key, value, stored.version, operator_name()};
    const auto version = co_await admin::change_service_config(connection, std::move(asked), deadline);
    if (!version) continue;
    print(fmt::format("{}: {} -> {} (version {})\n", key, described(trial.before, key, stored.value),
                      value ? visible(value) : described(trial.after, key, value), *version));
    tell_surprises(trial, key, value);
    co_return;
  }
  throw UserError(fmt::format("{}: others keep changing {}; try again", key, service_of(key)));
}

Task<void> print_history(pg::Connection& connection, std::optional<std::string> key) {
  const auto lines = co_await admin::service_config_history(connection, key, kHistoryMax, answer_deadline());
  if (lines.empty() && key) {
    refuse_foreign(Config(schema()), *key);
    print(fmt::format("{} was never changed in the database\n", *key));
    co_return;
  }
  print(
      fmt::format("{:<20}  {:>7}  {:<30}  {:<20}  {}\n", "when", "version", "key", "who", "before -> after"));
  for (const auto& line : lines) {
    print(fmt::format("{:<20}  {:>7}  {:<30}  {:<20}  {} -> {}\n", line.changed_at, line.version, line.key,
                      line.changed_by, visible(line.before), visible(line.after)));
  }
  if (lines.size() == static_cast<std::size_t>(kHistoryMax)) {
    print(fmt::format("(the last {}; cn_admin.service_config_history has all)\n", kHistoryMax));
  }
}

int set_key(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() != 3) throw UsageError("config set: name one key and its value");
  const auto config = load_config(arguments);
  const auto& spec = spec_of(words[1]);
  refuse_unchangeable(config, words[1]);
  const auto value = parse_value(spec, words[2]);
  if (!value)
    throw UserError(fmt::format("{} can't be '{}'; {}", spec.name, words[2], value.error().message));
  const auto nodes = node_configs(config, running_instances(data_folder(config)));
  with_running_database(command_config(arguments, Tell::no), [&](pg::Connection& connection) {
    return change_key(connection, nodes, words[1], format_value(spec, *value));
  });
  return 0;
}

int unset_key(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() != 2) throw UsageError("config unset: name one key");
  const auto config = load_config(arguments);
  // An entry that is no key, or not a live one, can only have been written by hand: it may go.
  if (const auto* spec = schema().find(words[1]); spec != nullptr && spec->live)
    refuse_unchangeable(config, words[1]);
  const auto nodes = node_configs(config, running_instances(data_folder(config)));
  with_running_database(command_config(arguments, Tell::no), [&](pg::Connection& connection) {
    return change_key(connection, nodes, words[1], std::nullopt);
  });
  return 0;
}

// `set`, `unset` or `history`; empty: the values are shown.
std::string verb_of(const Arguments& arguments) {
  auto word = arguments.words.empty() ? std::string() : arguments.words[0];
  if (word != "set" && word != "unset" && word != "history") return {};
  if (!arguments.options.empty())
    throw UsageError(fmt::format("config {} takes no --{}", word, arguments.options.begin()->first));
  return word;
}

int run_config(const Arguments& arguments) {
  const auto verb = verb_of(arguments);
  if (arguments.has("markdown")) {
    if (!arguments.words.empty()) throw UsageError("--markdown is the page of all keys and takes no key");
    print(configuration_page(schema()));
    return 0;
  }
  const auto& words = arguments.words;
  if (verb == "set") return set_key(arguments);
  if (verb == "unset") return unset_key(arguments);
  if (verb == "history") {
    if (words.size() > 2) throw UsageError("config history: name one key or none");
    const auto key = words.size() == 2 ? std::optional(words[1]) : std::nullopt;
    with_running_database(command_config(arguments, Tell::no),
                          [&](pg::Connection& connection) { return print_history(connection, key); });
    return 0;
  }
  if (words.size() > 1) throw UsageError(fmt::format("'{}' is one word too many", words[1]));
  return show_config(arguments);
}

}  // namespace

Command config_command() {
  return {
      .name = "config",
      .summary = "show the effective configuration and what every key means; change live keys",
      .synopsis = "[KEY] [--short | --json | --markdown] | set KEY VALUE | unset KEY | history [KEY]",
      .details =
          "Shows every value with where it came from; secrets are masked. With KEY, only that one.\n\n"
          "set and unset change a live key in the database, for every node on it; running ones follow at "
          "once. "
          "After unset the value of the file holds, or the default. A key that is set by flag or environment "
          "is "
          "pinned and can't be changed. history shows every change, the newest first.",
      .options = {{"short", "", "one line for each key"},
                  {"json", "", "values and sources as JSON"},
                  {"markdown", "", "the page docs/configuration.md"}},
      .words_max = 3,
      .run = run_config,
  };
}

}  // namespace todoke::app
