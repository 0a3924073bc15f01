#include "run.hpp"

#include <poll.h>

#include <fmt/format.h>

#include "harness/http_rig.hpp"
#include "left_over.hpp"
#include "properties.hpp"
#include "settings.hpp"

namespace todoke::test {
namespace {

constexpr int kFaults = 3;
constexpr int kWatchEveryMs = 20;
constexpr int kRestMs = 5;
// So that a fault draws the same whatever the ones before it met.
constexpr std::uint64_t kDrawsApart = 1'000;

std::string quoted_time(std::chrono::system_clock::time_point at) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  return fmt::format("to_timestamp({}.{:06})", micros / 1'000'000, micros % 1'000'000);
}

}  // namespace

SoakRun::SoakRun(SoakServer& server, std::uint64_t seed)
    : server_(server),
      seed_(seed),
      database_(fmt::format("run_{}", seed)),
      random_(seed),
      link_(server.url(database_)),
      gate_(server.url(database_)),
      broker_(seed + 1, kBrokerTimeout) {
  server_.make_database(database_);
  link_.rows(kLeftOver);
  nodes_ = std::make_unique<Nodes>(server_.socket_folder(), database_, environment());
  nodes_->revive();
  clients_ = std::make_unique<Clients>(seed, nodes_->ports());
  watcher_ = std::thread([this] { watch(); });
}

SoakRun::~SoakRun() {
  watching_ = false;
  if (watcher_.joinable()) watcher_.join();
  clients_.reset();
  nodes_.reset();
  link_.close();
  gate_.close();
  server_.drop_database(database_);
}

Environment SoakRun::environment() {
  Environment made{
      "TODOKE_BROKER_ADAPTER=http",
      "TODOKE_ORDERS_HTTP_URL=" + broker_.url("/orders"),
      fmt::format("OUTBOX_BACKOFF_SEC=[{},{}]", kBackoffFirstSec, kBackoffSec),
      fmt::format("OUTBOX_MAX_ATTEMPTS={}", kAttemptsMax),
      fmt::format("OUTBOX_CONCURRENCY={}", kConcurrency),
      fmt::format("OUTBOX_LOCK_LEASE_SEC={}", std::chrono::duration<double>(kLease).count()),
      fmt::format("BROKER_TIMEOUT_MS={}", kBrokerTimeout.count()),
      "TODOKE_ORDERS_HISTORY_MONTHS=12",
  };
  can_find_ = chance(random_, 75);
  if (can_find_) made.push_back("TODOKE_ORDERS_HTTP_FIND_URL=" + broker_.url("/orders/{key}"));
  tell(can_find_ ? "a broker that can be asked" : "a broker that can't be asked");
  return made;
}

void SoakRun::pause(int ms_min, int ms_max) {
  ::poll(nullptr, 0, pick(random_, ms_min, ms_max));
}

void SoakRun::rest() {
  ::poll(nullptr, 0, kRestMs);
}

// One that is not frozen: at most one is.
std::size_t SoakRun::any_node() {
  const auto index = static_cast<std::size_t>(pick(random_, 0, kNodes - 1));
  return nodes_->is_frozen(index) ? (index + 1) % kNodes : index;
}

void SoakRun::play() {
  const int point = 1 + static_cast<int>(seed_ % kKillPoints);
  const int turn = pick(random_, 0, kFaults - 1);
  const int piece_turn = (turn + pick(random_, 1, kFaults - 1)) % kFaults;
  for (int i = 0; i < kFaults; ++i) {
    random_.seed(seed_ * kDrawsApart + static_cast<std::uint64_t>(i));
    pause(100, 400);
    nodes_->resume_due();
    if (i == turn) {
      kill_point(point);
    } else if (i == piece_turn) {
      set_piece();
    } else if (chance(random_, 30)) {
      kill_point(pick(random_, 1, kKillPoints));
    } else {
      fault();
    }
  }
  gate_.close();
  nodes_->thaw();
  broker_.clear_up();
  nodes_->revive();
  clients_->stop();
  const auto until = std::chrono::steady_clock::now() + kSettledWithin;
  while (!is_settled() && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, kWatchEveryMs);
  watching_ = false;
  watcher_.join();
}

// Each with each kill point in turn.
void SoakRun::set_piece() {
  constexpr std::uint64_t kPieces = 4;
  switch ((seed_ + seed_ / kKillPoints) % kPieces) {
    case 0:
      return zombie();
    case 1:
      return zombie_of_itself();
    case 2:
      return fill_disk();
    default:
      return outage();
  }
}

void SoakRun::watch() {
  Link link(server_.url(database_));
  while (watching_ && seen_.empty()) {
    seen_ = broken_in_snapshot(link);
    ::poll(nullptr, 0, kWatchEveryMs);
  }
}

bool SoakRun::is_settled() {
  const auto open = link_.try_rows(
      "SELECT count(*) FROM orders.outbox_orders WHERE status NOT IN ('succeeded', 'aborted')");
  return open && open->front() == "0";
}

// What the test saw from outside goes where the properties can ask for it.
void SoakRun::write_down() {
  std::string sql = "BEGIN; TRUNCATE soak.book, soak.posts, soak.workers;";
  for (const auto& [key, entry] : broker_.book()) {
    sql += fmt::format(
        "INSERT INTO soak.book VALUES ('{}', {}, {}, {}, {}, nullif('{}', ''), nullif('{}', '')::numeric, "
        "{});",
        key, entry.copies, entry.marked, entry.unmarked, entry.unknown, entry.verdict, entry.qty,
        quoted_time(entry.at));
  }
  for (const auto& post : clients_->posts()) {
    sql += fmt::format("INSERT INTO soak.posts VALUES ('{}', {}, {}, {});", post.key, post.qty, post.status,
                       quoted_time(post.at));
  }
  for (const auto& [session, worker, clock_jumps] : nodes_->identities()) {
    sql += fmt::format("INSERT INTO soak.workers VALUES ('{}', '{}', {});", session, worker, clock_jumps);
  }
  link_.rows(sql + "COMMIT");
}

std::string SoakRun::problems() {
  write_down();
  const Limits limits{.attempts_max = kAttemptsMax,
                      .backoff_first_sec = kBackoffFirstSec,
                      .backoff_sec = kBackoffSec,
                      .can_find = can_find_};
  auto text = broken_at_end(link_, limits) + problems_ + nodes_->surprises();
  if (!seen_.empty()) text += "in a snapshot while it ran:\n" + seen_;
  if (link_.rows("SELECT 1 FROM soak.orders WHERE status = 'succeeded' LIMIT 1").empty()) {
    text += "nothing succeeded: the run was for nothing\n";
  }
  // P1, readable: what the API says is what the tables say.
  const auto states = link_.rows(
      "SELECT key || ' ' || o.status FROM soak.orders o JOIN orders.idempo_ledger ON idempotency_key = key"
      " ORDER BY id DESC LIMIT 10");
  for (const auto& state : states) {
    const auto split = state.find(' ');
    const auto answer =
        net::test::RawClient(nodes_->ports()[0]).ask(net::test::get("/do/order/" + state.substr(0, split)));
    const auto wanted = fmt::format("\"status\":\"{}\"", state.substr(split + 1));
    if (answer.body.find(wanted) == std::string::npos) {
      text += fmt::format("P1 {} is read as {} {}\n", state, answer.status, answer.body);
    }
  }
  return text;
}

}  // namespace todoke::test
