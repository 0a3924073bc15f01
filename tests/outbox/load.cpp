#include "load.hpp"

#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "harness/nostr_client.hpp"

namespace todoke::test {
namespace {

constexpr std::int64_t kPartitionWidth = 1'000'000;
// Leaves the processor to a server that recovers.
constexpr std::chrono::milliseconds kConnectPause(10);

std::string insert(const std::string& table, int writer, int transaction, int statement, int rows) {
  return fmt::format(
      "INSERT INTO cn_relay.{} (op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 'upsert', format('%s-%s-%s-%s', {}, {}, {}, i), 'kukuri:global', 1, 1700000000, now() "
      "FROM generate_series(1, {}) i",
      table, writer, transaction, statement, rows);
}

// The server does the waiting: a pause inside a transaction is one with its locks held.
std::string table_of(Link& link, Way way) {
  if (way != Way::partition) return "events_outbox";
  const auto head = link.run("SELECT last_value FROM cn_relay.events_outbox_seq");
  const auto seq = head && head->size() == 1 ? std::stoll(head->front()) + 1 : 0;
  return fmt::format("events_outbox_{:06}", seq / kPartitionWidth);
}

}  // namespace

int pick(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

std::string pause(Random& random, int ms_max) {
  return fmt::format("SELECT pg_sleep({} / 1000.0)", pick(random, 0, ms_max));
}

bool chance(Random& random, int percent) {
  return pick(random, 1, 100) <= percent;
}

std::optional<Rows> Link::run(const std::string& statement) {
  if (!session_ || !session_->is_open()) {
    try {
      session_.emplace(url_);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kConnectPause);
      return std::nullopt;
    }
  }
  try {
    return session_->run(statement);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void write_by_sql(const std::string& url, Way way, int writer, Random random, const std::atomic<bool>& stop) {
  Link link(url);
  for (int transaction = 0; !stop; ++transaction) {
    const auto table = table_of(link, way);
    std::vector<std::string> statements{"BEGIN"};
    if (way == Way::lock) statements.emplace_back("SELECT cn_relay.lock_log()");
    if (chance(random, 30)) statements.push_back(pause(random, 5));
    for (int i = pick(random, 1, 2); i > 0; --i) {
      const int rows = chance(random, 5) ? 100 : pick(random, 1, 10);
      statements.push_back(insert(table, writer, transaction, i, rows));
      if (chance(random, 20)) statements.push_back(pause(random, 5));
    }
    statements.emplace_back(chance(random, 15) ? "ROLLBACK" : "COMMIT");
    for (const auto& statement : statements) {
      if (link.run(statement)) continue;
      link.run("ROLLBACK");
      break;
    }
    link.run(pause(random, 10));
  }
}

void write_through_relay(const std::string& relay_url, Random random, const std::atomic<bool>& stop) {
  const auto key = nostr::SecretKey::generate();
  while (!stop) {
    try {
      NostrClient client(relay_url);
      for (int i = 0; !stop; ++i) client.publish(note(key, fmt::format("note {} of {}", i, random())));
    } catch (const std::exception&) {
      // The relay has hung up: somebody kills its connections to the database.
    }
  }
}

}  // namespace todoke::test
