// A service that lives on another event loop than its supervisor: its start, run and stop happen there.
#pragma once

#include <memory>
#include <string_view>

#include "base/service.hpp"

namespace todoke {

class OnLoop final : public Service {
 public:
  // The loop must run until the supervisor has stopped the service.
  OnLoop(Executor executor, std::shared_ptr<Service> service);

  [[nodiscard]] std::string_view name() const override { return service_->name(); }
  [[nodiscard]] bool essential() const override { return service_->essential(); }
  [[nodiscard]] Expected<void> validate() const override { return service_->validate(); }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  Executor executor_;
  std::shared_ptr<Service> service_;
};

}  // namespace todoke
