#include "link.hpp"

#include <stdexcept>

#include "harness/todoke_process.hpp"

namespace todoke::test {

std::optional<std::vector<std::string>> Link::try_rows(const std::string& sql) {
  try {
    if (!connection_) connection_ = std::make_unique<SqlSession>(conninfo_);
    auto values = connection_->run(sql);
    last_error_.clear();
    return values;
  } catch (const std::exception& error) {
    last_error_ = error.what();
    connection_.reset();
    return std::nullopt;
  }
}

std::vector<std::string> Link::rows(const std::string& sql) {
  std::optional<std::vector<std::string>> result;
  try {
    wait_until("the database", [&] {
      result = try_rows(sql);
      return result.has_value() || last_error_.starts_with("ERROR");
    });
  } catch (const std::exception&) {
    result.reset();
  }
  if (!result) throw std::runtime_error(last_error_ + "\nin: " + sql);
  return std::move(*result);
}

}  // namespace todoke::test
