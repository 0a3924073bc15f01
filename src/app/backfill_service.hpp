// Keeps the node's topics filled from the relays that gossip.backfill_from names (backfilling.hpp): one relay
// after the other, every gossip.backfill_every, and at once when the list changes. A relay that can't be
// reached or refuses is passed over until the next time. While the node is pressed or has no room nothing is
// asked for; what was begun stops and goes on from there.
//
// Of the processes on a database one fills, and another one when that has gone (lock_backfill). Health has a
// line with how far it is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/backfilling.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "outbox/pressure.hpp"

namespace todoke::app {

struct BackfillParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;
  pg::Listener& listener;
  pg::ConnectOptions database;
  pg::Storage& storage;
  const outbox::Pressure& pressure;
  HealthBoard& health;
  metrics::Registry& metrics;
};

class BackfillService final : public PeriodicService {
 public:
  explicit BackfillService(BackfillParts parts);

  // From anywhere.
  void change(const Config& config);

  [[nodiscard]] bool essential() const override { return false; }
  void stop() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> fill_from_all(pg::Connection& connection, StoreScope& store, std::vector<std::string> urls);
  Task<void> fill_from(pg::Connection& connection, StoreScope& store, std::string url);
  Task<void> refuse();
  void tell(const std::string& what);
  void put_off(std::size_t relays, const std::string& why);

  const Clock& clock_;
  const Executor executor_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  const pg::ConnectOptions database_;
  pg::Storage& storage_;
  const outbox::Pressure& pressure_;
  HealthBoard& health_;
  metrics::Family<metrics::Counter>& events_;
  metrics::Family<metrics::Counter>& relays_;
  SharedValue<Config> config_;
  std::weak_ptr<RelayClient> client_;  // of the relay that is being asked
};

}  // namespace todoke::app
