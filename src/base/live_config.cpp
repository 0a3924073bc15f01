#include "base/live_config.hpp"

#include <utility>

#include <fmt/format.h>

namespace todoke {
namespace {

// Enough to say what is wrong with a row; the next ones show when these are mended.
constexpr std::size_t kProblemsMax = 20;

std::string source_of(const ConfigRow& row) {
  return fmt::format("database ({}, version {})", row.service, row.version);
}

}  // namespace

LiveConfig::LiveConfig(Config base) : base_(std::move(base)), config_(base_) {}

Expected<void> LiveConfig::set_base(const Config& later) {
  auto before = base_;
  base_.adopt_changeable(later);
  auto next = layered(rows_);
  if (auto checked = next.check(); !checked) {
    base_ = std::move(before);
    return checked;
  }
  become(std::move(next));
  return {};
}

void LiveConfig::set_rows(const std::vector<ConfigRow>& rows) {
  problems_.clear();
  Rows next;
  for (const auto& row : rows) next.emplace(row.service, readable(row));
  rows_ = fitting(next);
  become(layered(rows_));
}

ConfigRow LiveConfig::readable(const ConfigRow& row) {
  auto trial = base_;
  const auto last = rows_.find(row.service);
  ConfigRow good{row.service, row.version, {}};
  for (const auto& [key, value] : row.values) {
    auto taken = service_of(key) == row.service
                     ? trial.set_database(key, value, source_of(row))
                     : Expected<void>(refuse(fmt::format("{} is no key of {}", key, row.service)));
    if (taken) {
      good.values.emplace(key, value);
      continue;
    }
    add_problem(row, taken.error());
    if (last == rows_.end()) continue;
    if (const auto old = last->second.values.find(key); old != last->second.values.end())
      good.values.insert(*old);
  }
  return good;
}

void LiveConfig::add_problem(const ConfigRow& row, const Refusal& refusal) {
  if (problems_.size() < kProblemsMax)
    problems_.push_back(fmt::format("{}: {}", source_of(row), refusal.message));
}

Config LiveConfig::layered(const Rows& rows) const {
  auto config = base_;
  for (const auto& [service, row] : rows) {
    for (const auto& [key, value] : row.values) (void)config.set_database(key, value, source_of(row));
  }
  return config;
}

LiveConfig::Rows LiveConfig::fitting(const Rows& rows) {
  if (layered(rows).check()) return rows;
  Rows taken;
  for (const auto& [service, row] : rows) {
    auto trial = taken;
    trial.emplace(service, row);
    const auto checked = layered(trial).check();
    if (!checked) {
      add_problem(row, checked.error());
      trial = taken;
      if (const auto last = rows_.find(service); last != rows_.end()) trial.insert(*last);
    }
    if (layered(trial).check()) taken = std::move(trial);
  }
  return taken;
}

void LiveConfig::become(Config next) {
  const bool has_changed = !config_.changed_in(next).empty();
  config_ = std::move(next);
  if (!has_changed) return;
  for (const auto& reader : readers_) reader(config_);
}

std::vector<std::string> LiveConfig::hidden() const {
  std::vector<std::string> lines;
  for (const auto& [service, row] : rows_) {
    for (const auto& [key, value] : row.values) {
      if (base_.schema().find_removed(key) != nullptr) continue;
      const auto& below = base_.setting(key);
      const auto& spec = *base_.schema().find(key);
      const auto said = parse_value(spec, value);
      if (!said || *said == below.value) continue;
      if (base_.is_pinned(key)) {
        lines.push_back(fmt::format("{} = {} of the database: pinned by {}", key, value, below.source));
      } else if (below.layer == Layer::file) {
        lines.push_back(fmt::format("{} = {} of {}: the database says {}", key,
                                    format_value(spec, below.value), below.source, value));
      }
    }
  }
  return lines;
}

}  // namespace todoke
