// What gossip may read of the store: the ids of a topic's events for a comparison, the events that a
// neighbour lacks, and what was taken lately. On the executor and the connections of public reads; one
// statement at a time for each call.
#pragma once

#include "base/clock.hpp"
#include "outbox/gossip_port.hpp"
#include "pg/pool.hpp"
#include "relay/reader.hpp"

namespace todoke::relay {

class GossipStore final : public outbox::FillSource {
 public:
  GossipStore(Reader& reader, pg::Pool& pool, Executor read_executor)
      : reader_(reader), pool_(pool), executor_(std::move(read_executor)) {}

  Task<outbox::NegSetPtr> ids(outbox::FillSpan span, outbox::FillView view, std::size_t events_max) override;
  Task<outbox::FillEvents> events(std::string topic, std::vector<nostr::EventId> ids) override;
  Task<std::vector<outbox::TakenEvent>> sent_since(SystemTime since, std::size_t events_max) override;

 private:
  Task<outbox::NegSetPtr> read_ids(outbox::FillSpan span, outbox::FillView view, std::size_t events_max);
  Task<outbox::FillEvents> read_events(std::string topic, std::vector<nostr::EventId> ids);
  Task<std::vector<outbox::TakenEvent>> read_sent(SystemTime since, std::size_t events_max);

  Reader& reader_;
  pg::Pool& pool_;
  const Executor executor_;
};

}  // namespace todoke::relay
