// Configuration: one table of keys, five layers, and for every value where it came from.
//
//   default < file (TOML) < database < environment < flag
//
// A key `server.listen` is `[server] listen` in the file, TODOKE_SERVER_LISTEN in the environment and
// `--server.listen` as a flag. A secret key takes its value from a file too: TODOKE_DATABASE_URL_FILE, or
// `url_file` in the TOML file. The database layer takes live keys only; a key that is set by environment or
// flag is pinned against it.
//
// Each room declares its keys as typed constants (`inline constexpr`) and lists them, with a check of what
// keys say together; `app` collects them in a Schema. Unknown keys, wrong types and values out of range are
// refused with file, line, key and what is allowed. A key that a former version had is not: its value has no
// effect, and Config::removed_settings() says so. How a value changes while the node runs: live_config.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace todoke {

enum class KeyType {
  text,
  integer,
  boolean,   // true, false, on, off
  choice,    // one of `choices`
  duration,  // 250ms, 5s, 0.5s, 10m, 2h, 30d; a bare number counts in `unit`
  size,      // 64KiB, 10MiB, 1GiB; a bare number is bytes
  address,   // host:port; port 0 means any
  path,
  list,  // texts: ["a", "b"] in TOML, `a,b` elsewhere
};

struct KeySpec {
  std::string_view name = {};
  KeyType type = KeyType::text;
  std::string_view fallback = {};  // the default, as it would be written in the environment
  std::string_view meaning = {};   // one or two sentences
  std::string_view choices = {};   // for choice: "on|off"
  std::string_view unit = {};      // for duration: the unit of a bare number (ms, s, m, h, d)
  // Bounds of an integer, a duration (in ms), a size (in bytes) or the number of entries of a list.
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool secret = false;
  // Changes while the node runs: in the database (`todoke config set`), and where that says nothing, in the
  // file at SIGHUP. Never with `secret`.
  bool live = false;
  bool reread = false;                // changes at SIGHUP, in the file only
  std::string_view environment = {};  // a second name of the variable, such as DATABASE_URL
};

// A key with the type of its value: std::string (text, choice, address, path), std::int64_t (integer, size),
// bool, std::chrono::milliseconds (duration) or std::vector<std::string> (list). A key that names no KeyType
// gets the first one of its type; `choices` turn a text into a choice.
template <class T>
struct Key {
  constexpr Key(const KeySpec& written) : spec(written) {
    if (spec.type == KeyType::text) spec.type = usual_type();
  }

  KeySpec spec;

 private:
  constexpr KeyType usual_type() const {
    if (std::is_same_v<T, std::int64_t>) return KeyType::integer;
    if (std::is_same_v<T, bool>) return KeyType::boolean;
    if (std::is_same_v<T, std::chrono::milliseconds>) return KeyType::duration;
    if (std::is_same_v<T, std::vector<std::string>>) return KeyType::list;
    return spec.choices.empty() ? KeyType::text : KeyType::choice;
  }
};

using ConfigValue =
    std::variant<std::string, std::int64_t, bool, std::chrono::milliseconds, std::vector<std::string>>;

enum class Layer { fallback, file, database, environment, flag };

// A key that a former version had. Configurations may still set it.
struct RemovedKey {
  std::string_view name;
  std::string_view instead;  // what holds now: "it is 20s for everybody", "use server.listen"
};

class Config;

// The keys of all rooms, and their checks.
class Schema {
 public:
  // Refuses values that contradict each other. Pure: reads no files and makes no calls.
  using Check = Expected<void> (*)(const Config&);

  void add(std::span<const KeySpec* const> keys, Check check = nullptr);
  // After all keys: none of them may be in the list.
  void add_removed(std::span<const RemovedKey> keys);
  [[nodiscard]] const KeySpec* find(std::string_view name) const;
  [[nodiscard]] const RemovedKey* find_removed(std::string_view name) const;
  // Whether a configuration may name it: a key, or one that was removed.
  [[nodiscard]] bool accepts(std::string_view name) const { return find(name) || find_removed(name); }
  [[nodiscard]] const std::map<std::string_view, const KeySpec*>& keys() const { return keys_; }
  [[nodiscard]] const std::map<std::string_view, const RemovedKey*>& removed() const { return removed_; }
  [[nodiscard]] const std::vector<Check>& checks() const { return checks_; }

 private:
  std::map<std::string_view, const KeySpec*> keys_;
  std::map<std::string_view, const RemovedKey*> removed_;
  std::vector<Check> checks_;
};

// The part of a key's name that is a row of the database's layer: relay.name belongs to relay.
std::string_view service_of(std::string_view key);

// The variable of a key: server.listen is TODOKE_SERVER_LISTEN.
std::string environment_name(std::string_view key);

// Parses a value as it is written in the environment, on the command line or in the database.
Expected<ConfigValue> parse_value(const KeySpec& spec, std::string_view text);
// The other way round. Durations and sizes come in their largest whole unit.
std::string format_value(const KeySpec& spec, const ConfigValue& value);
// "duration, 1s to 1h" and the like: what a value may be.
std::string allowed_values(const KeySpec& spec);

class Config {
 public:
  struct Setting {
    ConfigValue value;
    Layer layer = Layer::fallback;
    std::string source;  // "default", "todoke.toml:12", "TODOKE_SERVER_LISTEN", "--server.listen"
  };

  struct RemovedSetting {
    std::string_view key;
    Layer layer = Layer::file;
    std::string text;  // "todoke.toml:12: relay.colour is no longer a key and has no effect: …"

    friend bool operator==(const RemovedSetting&, const RemovedSetting&) = default;
  };

  // Every key at its default.
  explicit Config(const Schema& schema);

  // Each throws UserError that names the source, the key and what is allowed.
  void load_file(const std::string& path);
  void load_toml(std::string_view text, const std::string& name);
  // `environment` is a list of NAME=value, as in ::environ. Unknown TODOKE_… names are errors.
  void load_environment(std::span<const std::string> environment);
  void set_flag(std::string_view key, std::string_view value);
  // Refuses an unknown key, one that is not live or a secret, and a bad value: the row may be somebody's work
  // by hand. Accepts a removed key, without effect.
  Expected<void> set_database(std::string_view key, std::string_view value, const std::string& source);

  // The checks of all rooms: what a start would refuse.
  [[nodiscard]] Expected<void> check() const;
  // Sets the key back to its default and wipes the text: for a secret that is not needed any more.
  void forget(std::string_view key);
  // Adopts from `later` the keys that may change while the node runs.
  void adopt_changeable(const Config& later);

  template <class T>
  [[nodiscard]] const T& get(const Key<T>& key) const {
    return std::get<T>(setting(key.spec.name).value);
  }
  [[nodiscard]] const Setting& setting(std::string_view key) const;
  [[nodiscard]] bool is_default(std::string_view key) const { return setting(key).layer == Layer::fallback; }
  // Set by environment or flag: the database can't change it.
  [[nodiscard]] bool is_pinned(std::string_view key) const {
    return setting(key).layer >= Layer::environment;
  }
  // The file that was loaded, as an absolute path; empty: none.
  [[nodiscard]] const std::string& file() const { return file_; }
  // As text; a secret that is set shows as ********.
  [[nodiscard]] std::string shown(std::string_view key) const;
  // Removed keys that a layer still sets, in the order of loading.
  [[nodiscard]] const std::vector<RemovedSetting>& removed_settings() const { return removed_settings_; }
  [[nodiscard]] const Schema& schema() const { return *schema_; }
  // Keys whose values differ in `later`, which has the same schema.
  [[nodiscard]] std::vector<const KeySpec*> changed_in(const Config& later) const;

 private:
  void set_value(const KeySpec& spec, std::string_view text, Layer layer, const std::string& source);
  void set_from_file(const KeySpec& spec, const std::string& path, Layer layer, const std::string& source);
  // Whether the key was removed; notes that it is still set.
  bool note_removed(std::string_view key, Layer layer, const std::string& source);

  const Schema* schema_;
  std::map<std::string_view, Setting> settings_;
  std::vector<RemovedSetting> removed_settings_;
  std::string file_;
};

// The page docs/configuration.md, from the table of keys.
std::string configuration_page(const Schema& schema);

}  // namespace todoke
