// The database as a part of the node: up when a statement gets through. Keeps the pool tidy meanwhile.
#pragma once

#include <memory>
#include <string_view>

#include "base/service.hpp"
#include "pg/pool.hpp"

namespace todoke::pg {

class PoolService final : public Service {
 public:
  PoolService(Executor executor, Pool& pool);

  [[nodiscard]] std::string_view name() const override { return "database"; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  Pool& pool_;
  Signal stop_asked_;
};

}  // namespace todoke::pg
