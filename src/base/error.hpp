// Refused input is a value (Expected); what should not happen is an exception (std::runtime_error and its
// children).
#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace todoke {

// Why an input was refused, in words for the person who can mend it.
struct Refusal {
  std::string message;
};

template <class T>
using Expected = tl::expected<T, Refusal>;

inline tl::unexpected<Refusal> refuse(std::string message) {
  return tl::unexpected<Refusal>(Refusal{std::move(message)});
}

// An error that the person at the terminal can mend. Its text is shown as it is, without a stack of contexts.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What an exception says; for logs and health lines. Never throws.
std::string describe(const std::exception_ptr& error) noexcept;

}  // namespace todoke
