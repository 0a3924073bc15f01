#include "base/error.hpp"

namespace todoke {

std::string describe(const std::exception_ptr& error) noexcept {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace todoke
