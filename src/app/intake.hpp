// Events of another relay on their way into the store, and what became of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/store_scope.hpp"
#include "base/async.hpp"
#include "pg/storage.hpp"
#include "relay/import.hpp"

namespace todoke::app {

// What happens while the database has no room.
enum class NoRoom { wait, fail };

class Intake {
 public:
  Intake(StoreScope& store, Executor executor, NoRoom no_room = NoRoom::wait)
      : import_(store.importing), storage_(store.storage), no_room_(no_room), settled_(executor) {}

  // Checks the event, signature included, and hands it to the writer. Waits while too many are under way, and
  // while the database has no room where that is wanted. Throws UserError when the database takes no events.
  Task<void> store_event(std::string json);
  // Until everything that was taken is committed or refused.
  Task<void> wait_for_outcomes();

  [[nodiscard]] std::uint64_t stored() const { return stored_; }
  [[nodiscard]] std::uint64_t known() const { return known_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  // For people: "12 stored, 3 there already, 1 refused", and a line for each reason.
  [[nodiscard]] std::string summary() const;

 private:
  void outcome(relay::Outcome outcome);

  relay::Import& import_;
  const pg::Storage& storage_;
  const NoRoom no_room_;
  Signal settled_;
  std::uint64_t under_way_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t failed_ = 0;
  std::map<std::string, std::uint64_t> refused_;  // by why
};

}  // namespace todoke::app
