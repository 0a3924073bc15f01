#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/attempt.hpp"
#include "index/document_columns.hpp"
#include "index/documents_sql.hpp"
#include "index/index_consumer.hpp"

namespace todoke::index {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kPageEvents = 2'000;  // at most 128 MB, were each as large as the relay takes them
constexpr auto kPageTimeMax = 60s;
constexpr auto kOtherInstanceMax = 60s;
constexpr auto kIndexTimeMax = 6h;  // a backstop: documents are loaded and indexed at thousands a second

struct Page {
  std::vector<std::pair<std::string, outbox::LoggedEvent>> events;  // those that may become documents
  std::vector<SystemTime> ingested_at;
  std::string last_id;
  std::int64_t rows = 0;
};

Task<Page> read_page(pg::Connection& connection, std::string after) {
  pg::Params params(after, kPageEvents, kIndexedKinds);
  const auto rows =
      co_await connection.query(sql::kReadEvents, std::move(params), Deadline::after(kPageTimeMax));
  Page page;
  page.rows = static_cast<std::int64_t>(rows.size());
  for (const auto& row : rows) {
    page.last_id = row.get<std::string>(0);
    if (!row.get<bool>(8)) continue;
    outbox::LoggedEvent event;
    event.pubkey = row.get<std::string>(1);
    event.kind = row.get<std::int32_t>(2);
    event.created_at = row.get<std::int64_t>(3);
    event.topics = row.get<std::vector<std::string>>(5);
    event.tags_json = row.get<std::string>(6);
    event.content = row.get<std::string>(7);
    event.effective = true;
    // An id that is stored twice is one document.
    if (!page.events.empty() && page.events.back().first == page.last_id) {
      page.events.pop_back();
      page.ingested_at.pop_back();
    }
    page.events.emplace_back(page.last_id, std::move(event));
    page.ingested_at.push_back(row.get<SystemTime>(4));
  }
  co_return page;
}

std::vector<Document> documents_of(const Page& page) {
  std::vector<Document> documents;
  documents.reserve(page.events.size());
  for (std::size_t i = 0; i < page.events.size(); ++i) {
    const auto& [event_id, event] = page.events[i];
    if (is_public_post(event)) documents.push_back(document_of(event_id, page.ingested_at[i], event));
  }
  return documents;
}

Task<void> load_all(pg::Connection& connection, outbox::Consumer::Progress progress) {
  co_await connection.query(sql::kBeginRebuild, {}, Deadline::after(kPageTimeMax));
  const auto estimate = co_await connection.query(sql::kCountEvents, {}, Deadline::after(kPageTimeMax));
  const auto total = estimate.one().get<std::int64_t>(0);
  std::int64_t done = 0;
  std::string after;
  while (true) {
    const auto page = co_await read_page(connection, after);
    if (page.rows == 0) break;
    after = page.last_id;
    std::vector<Document> documents;
    co_await run_blocking([&] { documents = documents_of(page); });
    if (!documents.empty()) {
      co_await connection.query(sql::kLoadDocuments, columns_of(documents), Deadline::after(kPageTimeMax));
    }
    done += page.rows;
    co_await progress(connection, done, std::max(done, total));
  }
  co_await connection.query(sql::kIndexRebuilt, {}, Deadline::after(kIndexTimeMax));
  co_await progress(connection, done, done);
}

// The lock is the session's: an instance that was fenced off while it loads must not write into the table of
// the next.
Task<void> load_locked(pg::Connection& connection, outbox::Consumer::Progress progress) {
  co_await connection.query(sql::kLockRebuild, {}, Deadline::after(kOtherInstanceMax));
  co_await load_all(connection, std::move(progress));
  co_await connection.query(sql::kUnlockRebuild, {}, Deadline::after(kPageTimeMax));
}

}  // namespace

Task<void> IndexConsumer::rebuild(pg::Pool& pool, Progress progress) {
  const auto lease = co_await pool.acquire(Deadline::after(kPageTimeMax));
  const auto loaded = co_await attempt(load_locked(*lease, std::move(progress)));
  if (loaded) co_return;
  lease->close();
  std::rethrow_exception(loaded.error());
}

}  // namespace todoke::index
