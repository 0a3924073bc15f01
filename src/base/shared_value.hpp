// A value that one thread replaces and any thread reads. Readers keep the version that they got. Used instead
// of std::atomic<std::shared_ptr>, whose load() in the library of GCC 12 is a data race with the next
// store().
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace todoke {

template <class T>
class SharedValue {
 public:
  using Pointer = std::shared_ptr<const T>;

  explicit SharedValue(Pointer value) : value_(std::move(value)) {}

  [[nodiscard]] Pointer load() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void store(Pointer value) {
    const std::lock_guard lock(mutex_);
    value_.swap(value);
  }

 private:
  mutable std::mutex mutex_;
  Pointer value_;
};

}  // namespace todoke
