// The consumer that keeps cn_search.post_search_documents: what the log says of public posts, found by their
// text.
//
// A document exists for an event that was in effect when its row was read, and holds all topics of the event,
// whichever row named it. The last row of an event decides; applying rows again changes nothing. A delete
// empties the document and marks it.
//
// Cost for a batch: one round trip of at most two statements. Tokens are made on the blocking pool, not on
// the loop.
#pragma once

#include <string_view>
#include <vector>

#include "index/document.hpp"
#include "outbox/consumer.hpp"

namespace todoke::index {

inline constexpr std::string_view kConsumerName = "index-v1";

class IndexConsumer final : public outbox::Consumer {
 public:
  [[nodiscard]] std::string_view name() const override { return kConsumerName; }
  [[nodiscard]] bool mandatory() const override { return true; }
  Task<void> apply(outbox::Work work) override;

  // Reads all events in the order of their ids, 2,000 at a time, into a table beside the live one; makes the
  // indexes when all are there. No long transaction; one instance at a time, others wait for a minute and
  // throw.
  Task<void> rebuild(pg::Pool& pool, Progress progress) override;
  // Waits for those who read or write the table; the next ones wait for the commit.
  Task<void> swap(pg::Connection& connection, Deadline deadline) override;
};

}  // namespace todoke::index
