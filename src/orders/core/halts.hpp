// The kill switch as this process knows it: read twice a second and at every change. A caller that finds the
// last reading older than kStaleAfter reads anew. So a halt is in force everywhere within a second, or
// nothing is sent at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct Halt {
  std::string adapter;     // * for all
  std::string instrument;  // * for all
  bool intake_refused = false;
};

// Whether one of them holds for the adapter and the instrument.
bool is_halted(const std::vector<Halt>& halts, std::string_view adapter, std::string_view instrument);
// Whether one of them refuses new orders.
bool is_intake_refused(const std::vector<Halt>& halts, std::string_view adapter, std::string_view instrument);

using HaltList = std::shared_ptr<const std::vector<Halt>>;

class Halts final : public PeriodicService {
 public:
  static constexpr std::chrono::milliseconds kStaleAfter{900};
  static constexpr std::chrono::milliseconds kReadEvery{450};
  // More than that many single halts are a halt of everything, wrongly written.
  static constexpr std::int64_t kHaltsMax = 10'000;

  Halts(const Executor& executor, pg::Pool& pool, pg::Listener& listener, const Clock& clock,
        metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

  // The halts in force, at most kStaleAfter old; throws when they can't be read.
  Task<HaltList> current();
  // At once, on the executor: whether the last reading is fresh and halts neither the adapter nor the
  // instrument. A stale reading counts as a halt.
  [[nodiscard]] bool lets_go(std::string_view adapter, std::string_view instrument) const {
    return !is_stale() && !is_halted(*known(), adapter, instrument);
  }
  // The last reading, however old. From any thread.
  [[nodiscard]] HaltList known() const { return halts_.load(); }

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> read();
  Task<void> read_now();
  [[nodiscard]] bool is_stale() const;

  pg::Pool& pool_;
  pg::Listener& listener_;
  const Clock& clock_;
  SharedValue<std::vector<Halt>> halts_;
  SteadyTime read_at_{};
  bool was_read_ = false;
  bool is_reading_ = false;  // one asks for all who find it stale
  std::uint64_t failures_ = 0;
  std::exception_ptr failure_;  // the last one
  Signal read_ended_;
  pg::Listener::Subscription subscription_;
};

}  // namespace todoke::orders
