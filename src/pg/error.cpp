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

// False for what is no Error.
bool is_error(const std::exception_ptr& failure, bool (*test)(const Error&)) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return test(error);
  } catch (...) {
    return false;
  }
}
}  // namespace

bool Error::is_about_the_data() const {
  return sqlstate().starts_with("22") || sqlstate().starts_with("23") || sqlstate().starts_with("54");
}

Error::Error(Fields fields) : DatabaseError(summary(fields)), fields_(std::move(fields)) {}

bool refuses_data(const std::exception_ptr& failure) {
  return is_error(
      failure, [](const Error& error) { return error.is_about_the_data() && !error.is_missing_partition(); });
}

bool lacks_partition(const std::exception_ptr& failure) {
  return is_error(failure, [](const Error& error) { return error.is_missing_partition(); });
}

bool waited_for_lock(const std::exception_ptr& failure) {
  return is_error(failure, [](const Error& error) { return error.is_lock_timeout(); });
}

bool found_disk_full(const std::exception_ptr& failure) {
  return is_error(failure, [](const Error& error) { return error.is_disk_full(); });
}

bool is_unique_violation(const std::exception_ptr& failure) {
  return is_error(failure, [](const Error& error) { return error.is_unique_violation(); });
}

}  // namespace todoke::pg
