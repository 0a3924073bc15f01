// The configuration of a running node: one way for a value to change while it runs.
//
// The base is what the file, the environment and flags say; SIGHUP replaces it. Over it lie the rows of the
// database (cn_admin.service_configs), one for each service, which `app` reads. Either change makes a new
// configuration, which is checked as a whole like that of a start; then every reader is called with it.
//
// A row may be somebody's work by hand, so it never stops the node. A key that is refused keeps the value
// that it had; a row that contradicts the rest is left out as a whole, and the last good one stays. At a
// start there is none: then the base holds. problems() says what was refused.
//
// Everything is called on one executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"

namespace todoke {

// What the database says of the keys of one service.
struct ConfigRow {
  std::string service;
  std::int64_t version = 0;
  std::map<std::string, std::string, std::less<>> values;  // by key, as in the environment

  friend bool operator==(const ConfigRow&, const ConfigRow&) = default;
};

class LiveConfig {
 public:
  using Reader = std::function<void(const Config&)>;

  explicit LiveConfig(Config base);

  // In force now.
  [[nodiscard]] const Config& config() const { return config_; }
  // What the file, the environment and flags say, without the rows.
  [[nodiscard]] const Config& base() const { return base_; }
  // `reader` is called after every change of a value.
  void on_change(Reader reader) { readers_.push_back(std::move(reader)); }

  // Takes the keys of `later` that may change while the node runs. Refused: nothing has changed.
  Expected<void> set_base(const Config& later);
  // All rows that there are. The last list is replaced.
  void set_rows(const std::vector<ConfigRow>& rows);

  // What is refused of the rows, the first of it; empty: nothing.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  // Values that a stronger layer hides: of the file by the database, of the database by a pin.
  [[nodiscard]] std::vector<std::string> hidden() const;

 private:
  using Rows = std::map<std::string, ConfigRow, std::less<>>;  // by service

  // Without the keys that are refused.
  ConfigRow readable(const ConfigRow& row);
  void add_problem(const ConfigRow& row, const Refusal& refusal);
  [[nodiscard]] Config layered(const Rows& rows) const;
  // The rows, without those that contradict the rest.
  Rows fitting(const Rows& rows);
  void become(Config next);

  Config base_;
  Rows rows_;  // in force
  Config config_;
  std::vector<std::string> problems_;
  std::vector<Reader> readers_;
};

}  // namespace todoke
