#include "orders/intake/intake.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/attempt.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "orders/intake/intake_sql.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kConnectMax = 5s;
constexpr std::chrono::milliseconds kRetryFirst = 10ms;
constexpr std::chrono::milliseconds kRetryMost = 250ms;
constexpr std::chrono::milliseconds kWakeMax = 2s;
// A commit gets half of the patience, so that there is time to ask again when its answer does not come.
constexpr int kTriesInPatience = 2;
constexpr std::chrono::nanoseconds kTryMin = 100ms;
// A post waits so much longer than its patience for a verdict that is on its way; cancelling a statement
// takes up to 2 s.
constexpr std::chrono::milliseconds kGrace = 2'500ms;

pg::ConnectOptions session(pg::ConnectOptions options) {
  options.settings.emplace_back("options",
                                "-c orders.actor=api -c enable_seqscan=off -c enable_hashjoin=off "
                                "-c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off "
                                "-c lock_timeout=2000");
  options.application_name = "todoke orders intake";
  return options;
}

}  // namespace

struct IntakeTicket {
  enum class Phase { queued, taken, withdrawn };

  IntakeTicket(Offer o, const Executor& executor, SteadyTime patience_end)
      : offer(std::move(o)), until(patience_end), told(executor) {}

  void tell(IntakeOutcome what) {
    outcome = std::move(what);
    told.set_from_anywhere();
  }

  const Offer offer;
  const SteadyTime until;
  std::atomic<Phase> phase{Phase::queued};
  bool maybe_ours = false;  // a commit with it got no answer
  IntakeOutcome outcome;    // written before `told` is set
  Signal told;
};

Intake::Intake(const Executor& executor, IntakeOptions options, const Clock& clock, pg::Storage& storage,
               metrics::Registry& registry)
    : options_(std::move(options)),
      clock_(clock),
      storage_(storage),
      batch_orders_(registry.histogram("todoke_orders_intake_batch_orders",
                                       "Orders that one transaction took in.", metrics::size_buckets())),
      commit_seconds_(registry.histogram("todoke_orders_intake_commit_seconds",
                                         "Time to take a batch of orders in, commit included.",
                                         metrics::seconds_buckets())),
      committer_(
          executor,
          {.queue_max = options_.queue_orders_max, .retry_first = kRetryFirst, .retry_most = kRetryMost},
          *this, clock,
          registry.gauge("todoke_orders_intake_queued", "Posts that wait for the next transaction."),
          registry.counter("todoke_orders_intake_retries_total",
                           "Tries to take a batch of orders in that failed.")) {
  options_.connect = session(std::move(options_.connect));
}

Intake::~Intake() = default;

Task<IntakeOutcome> Intake::submit(Offer offer) {
  const auto executor = co_await asio::this_coro::executor;
  const auto until = clock_.steady() + options_.patience;
  const auto ticket = std::make_shared<IntakeTicket>(std::move(offer), executor, until);
  committer_.offer(ticket);
  bool told = co_await ticket->told.wait_for(options_.patience);
  auto queued = IntakeTicket::Phase::queued;
  if (!told && ticket->phase.compare_exchange_strong(queued, IntakeTicket::Phase::withdrawn)) {
    co_return IntakeOutcome{IntakeVerdict::unavailable, {}};
  }
  if (!told) told = co_await ticket->told.wait_for(kGrace);
  if (!told) co_return IntakeOutcome{IntakeVerdict::unknown, {}};
  co_return std::move(ticket->outcome);
}

Task<void> Intake::connect(Deadline deadline) {
  connection_.reset();
  connection_ = co_await pg::Connection::connect(options_.connect, deadline);
}

Task<void> Intake::start() {
  co_await connect(Deadline::after(kConnectMax));
}

void Intake::stop() {
  committer_.stop();
}

Task<void> Intake::run() {
  co_await committer_.run();
  connection_.reset();
}

Intake::Tickets Intake::next_batch(std::deque<IntakeTicketPtr>& queue) {
  Tickets batch;
  while (!queue.empty() && batch.size() < options_.batch_orders_max) {
    auto ticket = std::move(queue.front());
    queue.pop_front();
    auto queued = IntakeTicket::Phase::queued;
    if (ticket->phase.compare_exchange_strong(queued, IntakeTicket::Phase::taken))
      batch.push_back(std::move(ticket));
  }
  return batch;
}

SteadyTime Intake::patience_ends(const IntakeTicketPtr& ticket) const {
  return storage_.is_full() ? SteadyTime::min() : ticket->until;
}

std::chrono::nanoseconds Intake::time_for_try(const Tickets& part) const {
  const auto left = part.back()->until - clock_.steady();
  const std::chrono::nanoseconds most = options_.patience / kTriesInPatience;
  return std::clamp<std::chrono::nanoseconds>(left, kTryMin,
                                              std::max<std::chrono::nanoseconds>(most, kTryMin));
}

Task<void> Intake::commit(Tickets& part) {
  if (storage_.is_full()) throw pg::StorageFull();
  const auto deadline = Deadline::after(time_for_try(part));
  // A connection that died while nobody used it would make the outcome unknown for no reason.
  const bool alive = connection_ && connection_->usable() && connection_->still_connected();
  if (!alive) co_await connect(deadline);
  const auto first = firsts(part);
  std::vector<std::string_view> keys;
  std::vector<std::string_view> documents;
  std::vector<std::string_view> digests;
  std::vector<std::optional<std::string_view>> trace_ids;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (first[i] != i) continue;
    const auto& offer = part[i]->offer;
    keys.emplace_back(offer.key);
    documents.emplace_back(offer.document);
    digests.emplace_back(offer.digest);
    trace_ids.emplace_back(offer.trace_id);
  }
  pg::Batch batch;
  batch.add(sql::kAcceptOrders, pg::Params(keys, documents, digests, trace_ids));
  const auto began = std::chrono::steady_clock::now();
  const auto results = co_await connection_->run(std::move(batch), deadline);
  commit_seconds_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  batch_orders_.observe(static_cast<double>(part.size()));

  HashSet<std::string> taken;
  for (const auto& row : results[0]) taken.insert(row.get<std::string>(0));
  tell_taken(part, taken);
  if (!taken.empty()) co_await wake_workers();
  if (!part.empty()) co_await tell_known(part, deadline);
}

std::vector<std::size_t> Intake::firsts(const Tickets& part) {
  std::vector<const Offer*> offers;
  offers.reserve(part.size());
  for (const auto& ticket : part) offers.push_back(&ticket->offer);
  return first_of_key(offers);
}

void Intake::tell_taken(Tickets& part, const HashSet<std::string>& taken) {
  const auto first = firsts(part);
  Tickets rest;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto& leader = part[first[i]]->offer;
    if (taken.contains(leader.key)) {
      part[i]->tell(judge(part[i]->offer, first[i] == i, leader, KeyFate{.taken_now = true}));
    } else {
      rest.push_back(part[i]);
    }
  }
  part = std::move(rest);
}

Task<void> Intake::tell_known(Tickets& part, Deadline deadline) {
  const auto first = firsts(part);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (first[i] == i) keys.push_back(part[i]->offer.key);
  }
  pg::Params seen(keys);
  co_await connection_->query(sql::kMarkSeen, std::move(seen), deadline);
  auto states = co_await read_states(*connection_, keys, deadline);
  HashMap<std::string, OrderState> known;
  for (auto& state : states) known.emplace(state.idempotency_key, std::move(state));
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto& leader = *part[first[i]];
    KeyFate fate{.maybe_ours = leader.maybe_ours};
    if (const auto found = known.find(leader.offer.key); found != known.end()) fate.stored = found->second;
    part[i]->tell(judge(part[i]->offer, first[i] == i, leader.offer, fate));
  }
}

// Workers poll soon anyway: a failure here is no failure of the intake.
Task<void> Intake::wake_workers() {
  const auto woken = co_await attempt(connection_->query(sql::kWakeWorkers, {}, Deadline::after(kWakeMax)));
  if (!woken) log::debug("orders", "workers were not woken", {{"error", describe(woken.error())}});
}

// A key that came between two statements is no reason to refuse anything: the next try finds it.
bool Intake::refuses_data(const std::exception_ptr& failure) const {
  return pg::refuses_data(failure) && !pg::is_unique_violation(failure);
}

Task<void> Intake::mend(std::exception_ptr failure, Tickets& part) {
  if (is_a<pg::StorageFull>(failure)) co_return;
  if (pg::found_disk_full(failure)) storage_.set_refused(true);
  log::warning("orders", "a batch of orders was not taken",
               {{"error", describe(failure)}, {"orders", part.size()}});
  if (!is_a<pg::CommitOutcomeUnknown>(failure)) co_return;
  for (const auto& ticket : part) ticket->maybe_ours = true;
}

void Intake::fail(IntakeTicketPtr& ticket, CommitFailure why, const std::exception_ptr& failure) {
  switch (why) {
    case CommitFailure::queue_full:
      return ticket->tell({IntakeVerdict::unavailable, {}});
    case CommitFailure::refused:
      log::error("orders", "the database refuses an order", {{"error", describe(failure)}});
      return ticket->tell({IntakeVerdict::failed, {}});
    case CommitFailure::overdue:
      return ticket->tell({ticket->maybe_ours ? IntakeVerdict::unknown : IntakeVerdict::unavailable, {}});
  }
}

}  // namespace todoke::orders
