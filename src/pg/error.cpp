#include "pg/error.hpp"

#include <utility>

#include <fmt/format.h>

namespace todoke::pg {

namespace {
std::string summary(const Error::Fields& fields) {
  auto text = fmt::format("{} (SQLSTATE {}", fields.message, fields.sqlstate);
  if (!fields.statement.empty()) text += fmt::format(", statement {}", fields.statement);
  if (fields.index) text += fmt::format(", number {} of its batch", *fields.index);
  return text + ")";
}
}  // namespace

Error::Error(Fields fields) : DatabaseError(summary(fields)), fields_(std::move(fields)) {}

}  // namespace todoke::pg
