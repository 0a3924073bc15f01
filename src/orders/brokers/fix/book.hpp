// The book of a broker that speaks FIX, asked through the worker that has the session (fix_questions.hpp). A
// question goes to the session that its order went out on.
//
// At most kWaitingMax questions wait for an answer. As long as answers come they are waited for; when none
// has come for `patience`, the rest is given up. A session that nobody has, or whose broker answered nothing
// of some questions in a row, is not asked again; a notice says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "orders/core/adapter.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

class FixBook final : public BrokerBook {
 public:
  static constexpr std::size_t kWaitingMax = 100;
  // Of all commands together, as seen when another kWaitingMax are asked.
  static constexpr std::int64_t kWaitingOfAllMax = 1'000;
  // So many unanswered, and not one answered, say that the broker does not answer.
  static constexpr std::size_t kSilentMin = 8;
  static constexpr std::chrono::milliseconds kStatementMax{10'000};
  // Notifications wake it; this is for those that were lost.
  static constexpr std::chrono::milliseconds kLookEvery{1'000};

  FixBook(pg::ConnectOptions connect, std::chrono::milliseconds patience);

  Task<Answers> ask(std::vector<AskedOrder> orders) override;

 private:
  using Outcomes = std::map<std::int64_t, std::optional<FindOutcome>>;  // by outbox_id

  Task<pg::Connection*> connection();
  Task<void> ask_some(std::span<const AskedOrder> orders, Answers& answers);
  // By outbox_id the session of each that waits now; what can't be asked is in `outcomes`.
  Task<std::map<std::int64_t, std::string>> put(std::span<const AskedOrder> orders, Outcomes& outcomes,
                                                Answers& answers);
  Task<void> wait_for_answers();
  Task<void> collect(Outcomes& outcomes);
  void close_silent(const std::map<std::int64_t, std::string>& asked, const Outcomes& outcomes,
                    Answers& answers);

  pg::ConnectOptions connect_;
  std::chrono::milliseconds patience_;
  std::string run_;  // this one's name, in asked_by
  std::unique_ptr<pg::Connection> connection_;
  std::set<std::string> closed_;  // sessions that are not asked any more
};

}  // namespace todoke::orders
