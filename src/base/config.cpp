#include "base/config.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/wipe.hpp"

namespace todoke {
namespace {

constexpr std::size_t kSecretFileBytesMax = 64 * 1024;

struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};

// Largest first, so that formatting takes the largest whole unit.
constexpr Unit kDurationUnits[] = {
    {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1},
};
constexpr Unit kSizeUnits[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};

// "0.25" times `factor`, where that is a whole number.
std::optional<std::int64_t> parse_fraction(std::string_view text, std::int64_t factor) {
  const auto point = text.find('.');
  if (point == std::string_view::npos) {
    const auto number = parse_number<std::int64_t>(text);
    std::int64_t result = 0;
    if (!number || __builtin_mul_overflow(*number, factor, &result)) return std::nullopt;
    return result;
  }
  constexpr std::size_t kFractionDigitsMax = 3;
  const auto digits = text.substr(point + 1);
  if (digits.empty() || digits.size() > kFractionDigitsMax || digits.find('-') != std::string_view::npos) {
    return std::nullopt;
  }
  const auto joined = parse_number<std::int64_t>(std::string(text.substr(0, point)) + std::string(digits));
  std::int64_t tens = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) tens *= 10;
  std::int64_t result = 0;
  if (!joined || __builtin_mul_overflow(*joined, factor, &result) || result % tens != 0) return std::nullopt;
  return result / tens;
}

// A number with a unit; `bare` is the factor of a number without one.
std::optional<std::int64_t> parse_scaled(std::string_view text, std::span<const Unit> units,
                                         std::int64_t bare) {
  const auto split = text.find_first_not_of("-.0123456789");
  std::int64_t factor = bare;
  if (split != std::string_view::npos) {
    const auto unit = std::find_if(units.begin(), units.end(),
                                   [&](const Unit& u) { return u.suffix == text.substr(split); });
    if (unit == units.end()) return std::nullopt;
    factor = unit->factor;
  }
  return parse_fraction(text.substr(0, split), factor);
}

std::string format_scaled(std::int64_t number, std::span<const Unit> units) {
  for (const auto& unit : units) {
    if (number % unit.factor == 0 && (number != 0 || unit.factor == 1)) {
      return fmt::format("{}{}", number / unit.factor, unit.suffix);
    }
  }
  return std::to_string(number);
}

std::int64_t bare_duration_factor(const KeySpec& spec) {
  for (const auto& unit : kDurationUnits) {
    if (unit.suffix == spec.unit) return unit.factor;
  }
  return 1;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    const auto part = trimmed(text.substr(0, at));
    if (!part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// [a, "b"] or a,b
std::vector<std::string> parse_list(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  auto parts = split(text, ',');
  for (auto& part : parts) {
    if (part.size() >= 2 && part.front() == '"' && part.back() == '"') part = part.substr(1, part.size() - 2);
  }
  return parts;
}

bool is_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto port = parse_number<std::int64_t>(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return false;
  const auto host = text.substr(0, colon);
  return host.find(':') == std::string_view::npos || (host.front() == '[' && host.back() == ']');
}

bool in_range(const KeySpec& spec, std::int64_t number) {
  return number >= spec.min && number <= spec.max;
}

std::string format_bound(const KeySpec& spec, std::int64_t bound) {
  if (spec.type == KeyType::duration) return format_scaled(bound, kDurationUnits);
  if (spec.type == KeyType::size) return format_scaled(bound, kSizeUnits);
  return std::to_string(bound);
}

std::string format_range(const KeySpec& spec) {
  const bool low = spec.min != std::numeric_limits<std::int64_t>::min();
  const bool high = spec.max != std::numeric_limits<std::int64_t>::max();
  if (low && high) return fmt::format("{} to {}", format_bound(spec, spec.min), format_bound(spec, spec.max));
  if (low) return fmt::format("{} or more", format_bound(spec, spec.min));
  if (high) return fmt::format("{} or less", format_bound(spec, spec.max));
  return {};
}

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::text:
      return "text";
    case KeyType::integer:
      return "integer";
    case KeyType::boolean:
      return "on or off";
    case KeyType::choice:
      return "choice";
    case KeyType::duration:
      return "duration";
    case KeyType::size:
      return "size";
    case KeyType::address:
      return "host:port";
    case KeyType::path:
      return "path";
    case KeyType::list:
      return "list";
  }
  return "text";
}

}  // namespace

void Schema::add(std::span<const KeySpec* const> keys, Check check) {
  if (check != nullptr) checks_.push_back(check);
  for (const auto* spec : keys) {
    if (spec->live && spec->secret)
      throw std::logic_error("a secret can't be live: " + std::string(spec->name));
    if (!keys_.emplace(spec->name, spec).second)
      throw std::logic_error("key declared twice: " + std::string(spec->name));
    if (auto fallback = parse_value(*spec, spec->fallback); !fallback) {
      throw std::logic_error(
          fmt::format("the default of {} is not allowed: {}", spec->name, fallback.error().message));
    }
  }
}

const KeySpec* Schema::find(std::string_view name) const {
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : found->second;
}

void Schema::add_removed(std::span<const RemovedKey> keys) {
  for (const auto& key : keys) {
    if (find(key.name) != nullptr || !removed_.emplace(key.name, &key).second)
      throw std::logic_error("removed key is a key, or was removed twice: " + std::string(key.name));
  }
}

const RemovedKey* Schema::find_removed(std::string_view name) const {
  const auto found = removed_.find(name);
  return found == removed_.end() ? nullptr : found->second;
}

std::string_view service_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string environment_name(std::string_view key) {
  std::string name = "TODOKE_";
  for (char c : key)
    name.push_back(c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  return name;
}

std::string allowed_values(const KeySpec& spec) {
  auto text = std::string(type_name(spec.type));
  if (spec.type == KeyType::choice) {
    text = "one of";
    for (const auto& choice : split(spec.choices, '|')) text += " " + choice;
  }
  if (spec.type == KeyType::duration) text += " such as 250ms, 5s, 10m, 2h, 30d";
  if (spec.type == KeyType::size) text += " such as 512, 64KiB, 10MiB, 1GiB";
  const auto range = format_range(spec);
  if (!range.empty()) text += ", " + range;
  if (spec.type == KeyType::list && !range.empty()) text += " entries";
  return text;
}

Expected<ConfigValue> parse_value(const KeySpec& spec, std::string_view raw) {
  const auto text = trimmed(raw);
  const auto refused = [&] { return refuse(fmt::format("allowed: {}", allowed_values(spec))); };
  // Values go into JSON, the log and the database, so they are UTF-8; a path may have any bytes.
  if (spec.type != KeyType::path && !is_utf8(text)) return refuse("it is not UTF-8");
  switch (spec.type) {
    case KeyType::text:
    case KeyType::path:
      return ConfigValue(std::string(text));
    case KeyType::address:
      if (!is_address(text)) return refused();
      return ConfigValue(std::string(text));
    case KeyType::choice:
      for (const auto& choice : split(spec.choices, '|')) {
        if (choice == text) return ConfigValue(std::string(text));
      }
      return refused();
    case KeyType::boolean:
      if (text == "true" || text == "on" || text == "1") return ConfigValue(true);
      if (text == "false" || text == "off" || text == "0") return ConfigValue(false);
      return refused();
    case KeyType::integer: {
      const auto number = parse_number<std::int64_t>(text);
      if (!number || !in_range(spec, *number)) return refused();
      return ConfigValue(*number);
    }
    case KeyType::duration: {
      const auto number = parse_scaled(text, kDurationUnits, bare_duration_factor(spec));
      if (!number || !in_range(spec, *number)) return refused();
      return ConfigValue(std::chrono::milliseconds(*number));
    }
    case KeyType::size: {
      const auto number = parse_scaled(text, kSizeUnits, 1);
      if (!number || !in_range(spec, *number)) return refused();
      return ConfigValue(*number);
    }
    case KeyType::list: {
      auto entries = parse_list(text);
      if (!in_range(spec, static_cast<std::int64_t>(entries.size()))) return refused();
      return ConfigValue(std::move(entries));
    }
  }
  return refused();
}

std::string format_value(const KeySpec& spec, const ConfigValue& value) {
  switch (spec.type) {
    case KeyType::text:
    case KeyType::path:
    case KeyType::address:
    case KeyType::choice:
      return std::get<std::string>(value);
    case KeyType::boolean:
      return std::get<bool>(value) ? "on" : "off";
    case KeyType::integer:
      return std::to_string(std::get<std::int64_t>(value));
    case KeyType::duration:
      return format_scaled(std::get<std::chrono::milliseconds>(value).count(), kDurationUnits);
    case KeyType::size:
      return format_scaled(std::get<std::int64_t>(value), kSizeUnits);
    case KeyType::list:
      return fmt::format("{}", fmt::join(std::get<std::vector<std::string>>(value), ","));
  }
  return {};
}

Config::Config(const Schema& schema) : schema_(&schema) {
  for (const auto& [name, spec] : schema.keys()) {
    settings_[name] = Setting{*parse_value(*spec, spec->fallback), Layer::fallback, "default"};
  }
}

void Config::set_value(const KeySpec& spec, std::string_view text, Layer layer, const std::string& source) {
  auto value = parse_value(spec, text);
  if (!value) {
    const auto got = spec.secret ? std::string("the value given") : fmt::format("'{}'", text);
    throw UserError(fmt::format("{}: {} can't be {}; {}", source, spec.name, got, value.error().message));
  }
  auto& setting = settings_.at(spec.name);
  if (setting.layer > layer) return;
  setting = Setting{std::move(*value), layer, source};
}

void Config::set_from_file(const KeySpec& spec, const std::string& path, Layer layer,
                           const std::string& source) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kSecretFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) {
    throw UserError(fmt::format("{}: {} can't be read from {} (no such file, no permission, or over 64 KiB)",
                                source, spec.name, path));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  set_value(spec, text, layer, fmt::format("{} ({})", source, path));
}

bool Config::note_removed(std::string_view key, Layer layer, const std::string& source) {
  const auto* removed = schema_->find_removed(key);
  if (removed == nullptr) return false;
  removed_settings_.push_back(
      {removed->name, layer,
       fmt::format("{}: {} is no longer a key and has no effect: {}", source, key, removed->instead)});
  return true;
}

void Config::load_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (std::filesystem::is_directory(path)) throw UserError(fmt::format("{}: is a folder, not a file", path));
  if (!file) throw UserError(fmt::format("{}: can't be read: no such file, or no permission", path));
  std::stringstream text;
  text << file.rdbuf();
  load_toml(text.str(), path);
  file_ = std::filesystem::absolute(path).string();
}

void Config::load_environment(std::span<const std::string> environment) {
  std::map<std::string, std::pair<const KeySpec*, bool>, std::less<>>
      names;  // name -> key, and whether it names a file
  for (const auto& [key, spec] : schema_->keys()) {
    for (const auto& name : {environment_name(key), std::string(spec->environment)}) {
      if (name.empty()) continue;
      names[name] = {spec, false};
      if (spec->secret) names[name + "_FILE"] = {spec, true};
    }
  }
  std::map<std::string, std::string_view, std::less<>> removed;
  for (const auto& [key, _] : schema_->removed()) removed.emplace(environment_name(key), key);
  // The project's own name of a key is stronger than its second name, whatever the order of the variables.
  for (const bool own : {false, true}) {
    for (const auto& entry : environment) {
      const auto equals = entry.find('=');
      const auto name = entry.substr(0, equals);
      if (equals == std::string::npos || name.starts_with("TODOKE_") != own) continue;
      const auto value = std::string_view(entry).substr(equals + 1);
      const auto found = names.find(name);
      if (found == names.end()) {
        const auto gone = removed.find(name);
        if (gone != removed.end()) {
          note_removed(gone->second, Layer::environment, name);
        } else if (own && name != "TODOKE_CONFIG" && !name.starts_with("TODOKE_TEST_")) {
          throw UserError(fmt::format("{}: no such key; `todoke config` lists them all", name));
        }
        continue;
      }
      const auto& [spec, from_file] = found->second;
      if (from_file) {
        set_from_file(*spec, std::string(value), Layer::environment, name);
      } else {
        set_value(*spec, value, Layer::environment, name);
      }
    }
  }
}

void Config::set_flag(std::string_view key, std::string_view value) {
  if (note_removed(key, Layer::flag, fmt::format("--{}", key))) return;
  const auto* spec = schema_->find(key);
  if (spec == nullptr)
    throw UserError(fmt::format("--{}: no such option or key; `todoke config` lists all keys", key));
  set_value(*spec, value, Layer::flag, fmt::format("--{}", key));
}

Expected<void> Config::set_database(std::string_view key, std::string_view value, const std::string& source) {
  if (note_removed(key, Layer::database, source)) return {};
  const auto* spec = schema_->find(key);
  if (spec == nullptr) return refuse(fmt::format("{}: no such key; `todoke config` lists them all", key));
  if (spec->secret) return refuse(fmt::format("{} is a secret, and secrets never go into the database", key));
  if (!spec->live) {
    return refuse(fmt::format("{} is not live: set it in the file, in the environment ({}) or by a flag", key,
                              environment_name(key)));
  }
  if (const auto parsed = parse_value(*spec, value); !parsed) {
    return refuse(fmt::format("{} can't be '{}'; {}", key, value, parsed.error().message));
  }
  set_value(*spec, value, Layer::database, source);
  return {};
}

Expected<void> Config::check() const {
  for (const auto check : schema_->checks()) {
    if (auto checked = check(*this); !checked) return checked;
  }
  return {};
}

void Config::forget(std::string_view key) {
  const auto* spec = schema_->find(key);
  if (spec == nullptr) throw std::logic_error("key not declared: " + std::string(key));
  auto& setting = settings_.at(spec->name);
  if (auto* text = std::get_if<std::string>(&setting.value)) wipe(*text);
  setting = Setting{*parse_value(*spec, spec->fallback), Layer::fallback, "default"};
}

void Config::adopt_changeable(const Config& later) {
  for (const auto& [name, spec] : schema_->keys()) {
    if (spec->live || spec->reread) settings_.at(name) = later.setting(name);
  }
  removed_settings_ = later.removed_settings_;
}

const Config::Setting& Config::setting(std::string_view key) const {
  const auto found = settings_.find(key);
  if (found == settings_.end()) throw std::logic_error("key not declared: " + std::string(key));
  return found->second;
}

std::string Config::shown(std::string_view key) const {
  const auto* spec = schema_->find(key);
  auto text = format_value(*spec, setting(key).value);
  return spec->secret && !text.empty() ? "********" : text;
}

std::vector<const KeySpec*> Config::changed_in(const Config& later) const {
  std::vector<const KeySpec*> changed;
  for (const auto& [name, spec] : schema_->keys()) {
    if (setting(name).value != later.setting(name).value) changed.push_back(spec);
  }
  return changed;
}

std::string configuration_page(const Schema& schema) {
  std::string page =
      "# Configuration\n\n"
      "<!-- Made by `todoke config --markdown`; a test keeps it equal to the table of keys in the code. "
      "-->\n\n"
      "A value comes from the strongest layer that sets it: default, then the file (`--config FILE`, "
      "`TODOKE_CONFIG`, or\n"
      "`todoke.toml` in the current folder, which root never reads), then, for live keys, the database, then "
      "the environment, then a "
      "flag\n"
      "(`--server.listen 127.0.0.1:8080`). `todoke config` shows every value and where it came from. Live "
      "keys and the\n"
      "database: [operations.md](operations.md#live-configuration).\n\n"
      "Secrets can be read from a file: append `_FILE` to the variable, or `_file` to the key in the TOML "
      "file.\n\n"
      "A key that is not on this page stops the start. A key that a former version had does not: its value "
      "has no effect,\n"
      "and the log, `todoke config` and `todoke doctor` name it and say what holds instead.\n";
  std::string section;
  for (const auto& [name, spec] : schema.keys()) {
    const auto head = std::string(name.substr(0, name.find('.')));
    const auto title = name.find('.') == std::string_view::npos ? std::string("General") : "`[" + head + "]`";
    if (title != section) {
      section = title;
      page += fmt::format("\n## {}\n", title);
    }
    page += fmt::format("\n### `{}`\n\n{}\n\n", name, spec->meaning);
    page += fmt::format("- allowed: {}\n", allowed_values(*spec));
    if (!spec->unit.empty()) page += fmt::format("- unit of a bare number: {}\n", spec->unit);
    page += fmt::format("- default: {}\n",
                        spec->fallback.empty() ? "empty" : fmt::format("`{}`", spec->fallback));
    page += fmt::format("- environment: `{}`", environment_name(name));
    if (!spec->environment.empty()) page += fmt::format(" or `{}`", spec->environment);
    page += "\n";
    if (spec->secret) page += "- secret: never shown; can come from a file\n";
    if (spec->live) page += "- live: `todoke config set` changes it while the node runs\n";
    if (spec->reread) page += "- SIGHUP reads it again\n";
  }
  return page;
}

}  // namespace todoke
