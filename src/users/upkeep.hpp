// Reads the secret of the access tokens at the start, and throws away what has expired: challenges, counted
// requests, counters of former months, copies of personal data.
//
// Bounded: some rows of each table in a round; what is left waits for the next.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/periodic.hpp"
#include "users/desk.hpp"

namespace todoke::users {

struct UpkeepOptions {
  std::filesystem::path secret_file;
  std::string issuer;
  std::chrono::seconds token_lifetime{0};
};

class Upkeep final : public PeriodicService {
 public:
  Upkeep(const Executor& executor, UpkeepOptions options, DeskPtr desk, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  // Throws UserError for a secret file that can't be used.
  Task<void> start() override;

 private:
  Task<void> round(RoundCause cause) override;

  const UpkeepOptions options_;
  const DeskPtr desk_;
};

}  // namespace todoke::users
