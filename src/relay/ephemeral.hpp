// Takes ephemeral events to the subscribers of every relay of this database: at once to those of this one,
// and through an unlogged table, which is emptied within seconds, to the others. Each id goes out once on
// each relay, however often and wherever it was sent. A client that is not connected at that moment gets
// nothing.
//
// Bounded: `waiting_max` events on their way to the table; what comes beyond stays on this relay and is
// counted.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/periodic.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/incoming.hpp"
#include "relay/known_ids.hpp"
#include "relay/metrics.hpp"

namespace todoke::relay {

class EphemeralExchange final : public PeriodicService {
 public:
  using Deliver = std::function<void(LiveEventPtr)>;
  static constexpr std::size_t kWaitingMax = 2'000;

  EphemeralExchange(const Executor& executor, pg::Pool& pool, pg::Listener& listener, const Clock& clock,
                    RelayMetrics& metrics, Deliver deliver);

  // From anywhere. False: it was sent before.
  bool send(LiveEventPtr live);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> write(pg::Connection& connection, Deadline deadline);
  Task<void> read(pg::Connection& connection, Deadline deadline);
  void deliver_foreign(pg::ByteView json);

  pg::Pool& pool_;
  pg::Listener& listener_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  Deliver deliver_;
  const std::string origin_;
  KnownIds sent_;
  Executor executor_;
  bool told_ = true;  // others may have sent something
  std::int64_t last_id_ = 0;
  SteadyTime empty_at_{};
  pg::Listener::Subscription subscription_;

  std::mutex mutex_;
  std::vector<LiveEventPtr> waiting_;
};

// What subscribers need to know of an event that is not stored.
LiveEventPtr live_of(const Incoming& incoming);

}  // namespace todoke::relay
