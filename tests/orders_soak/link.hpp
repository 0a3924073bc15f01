// SQL on a server that may be gone at any moment.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/sql_session.hpp"

namespace todoke::test {

class Link {
 public:
  explicit Link(std::string conninfo) : conninfo_(std::move(conninfo)) {}

  // The first column of the last statement's rows; nothing when the server is not there or refuses.
  std::optional<std::vector<std::string>> try_rows(const std::string& sql);
  // Tries until there is a server or the patience ends; throws what it says. For what may run twice.
  std::vector<std::string> rows(const std::string& sql);
  // Ends the session with everything it holds.
  void close() { connection_.reset(); }

 private:
  std::string conninfo_;
  std::unique_ptr<SqlSession> connection_;
  std::string last_error_;
};

}  // namespace todoke::test
