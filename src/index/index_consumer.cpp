#include "index/index_consumer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/hash_table.hpp"
#include "index/document_columns.hpp"
#include "index/documents_sql.hpp"

namespace todoke::index {
namespace {

using outbox::LogRow;

// What the rows of one event come to.
struct Change {
  const LogRow* last = nullptr;
  std::vector<std::string_view> topics;  // that its upserts named
};

struct Effects {
  std::vector<Document> put;
  std::vector<std::string_view> erased;
};

void add_topics(std::vector<std::string>& topics, const std::vector<std::string_view>& more) {
  for (const auto topic : more) {
    if (!topic.empty() && std::find(topics.begin(), topics.end(), topic) == topics.end())
      topics.emplace_back(topic);
  }
}

Effects effects_of(const outbox::Work& work) {
  HashMap<std::string_view, Change> changes;
  for (const auto& row : work.rows) {
    if (!is_indexed(row.kind)) continue;
    auto& change = changes[row.event_id];
    change.last = &row;
    if (row.op == outbox::Op::upsert) change.topics.push_back(row.topic_id);
  }
  Effects effects;
  for (const auto& [event_id, change] : changes) {
    const auto event = work.events.find(change.last->event_id);
    if (change.last->op == outbox::Op::erase || event == work.events.end() ||
        !is_public_post(event->second)) {
      effects.erased.push_back(event_id);
      continue;
    }
    auto& document = effects.put.emplace_back(document_of(event_id, change.last->ingested_at, event->second));
    add_topics(document.topics, change.topics);
  }
  return effects;
}

}  // namespace

Task<void> IndexConsumer::apply(outbox::Work work) {
  Effects effects;
  co_await run_blocking([&] { effects = effects_of(work); });
  pg::Batch batch(pg::Batch::Mode::plain);
  if (!effects.put.empty()) batch.add(sql::kPutDocuments, columns_of(effects.put));
  if (!effects.erased.empty()) batch.add(sql::kDeleteDocuments, pg::Params(effects.erased));
  if (batch.size() > 0) co_await work.connection.run(std::move(batch), work.deadline);
}

Task<void> IndexConsumer::swap(pg::Connection& connection, Deadline deadline) {
  co_await connection.query(sql::kSwapRebuilt, {}, deadline);
}

}  // namespace todoke::index
