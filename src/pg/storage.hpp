// Whether there is room on the database's disk, as one state. Every part that takes in something new from
// outside reads it: events and orders. Two things make it full, each of which is taken back by itself
// (app/storage_watch.hpp):
//
//   low       fewer bytes are free than capacity.min_free_bytes; only where the server is this node's own
//   refused   the server ended a transaction with SQLSTATE 53100, wherever it runs
//
// What is under way goes on: settling of orders, consumers, purges. These are bounded by what was taken in,
// and some of them make room.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace todoke::pg {

class Storage {
 public:
  [[nodiscard]] bool is_full() const { return is_low_.load() || was_refused_.load(); }
  [[nodiscard]] bool is_low() const { return is_low_; }
  [[nodiscard]] bool was_refused() const { return was_refused_; }
  void set_low(bool low) { is_low_ = low; }
  void set_refused(bool refused) { was_refused_ = refused; }

 private:
  std::atomic<bool> is_low_{false};
  std::atomic<bool> was_refused_{false};
};

// Thrown instead of trying a commit.
class StorageFull : public std::runtime_error {
 public:
  StorageFull() : std::runtime_error("storage full") {}
};

// A quarter more than the least must be free before the disk counts as having room again, so that the state
// does not flutter. Below 2^62 bytes.
constexpr std::uint64_t free_bytes_to_resume(std::uint64_t free_bytes_min) {
  return free_bytes_min + free_bytes_min / 4;
}

// Pure: whether the disk is low, from whether it was and what is free now.
constexpr bool next_low(bool was_low, std::uint64_t free_bytes, std::uint64_t free_bytes_min) {
  return free_bytes < (was_low ? free_bytes_to_resume(free_bytes_min) : free_bytes_min);
}

}  // namespace todoke::pg
