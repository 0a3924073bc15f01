// What the node says of itself (src/bootstrap), as the User API asks for it.
#pragma once

#include "bootstrap/directory.hpp"
#include "users/sources.hpp"

namespace todoke::app {

class BootstrapDirectory final : public users::BootstrapSource {
 public:
  explicit BootstrapDirectory(pg::Pool& pool) : directory_(pool) {}

  Task<std::vector<Entry>> nodes(Deadline deadline) override;
  Task<std::vector<Entry>> topic_services(std::string topic, Deadline deadline) override;
  Task<Hints> hints_after(std::int64_t since, Deadline deadline) override;

 private:
  bootstrap::Directory directory_;
};

}  // namespace todoke::app
