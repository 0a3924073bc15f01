// Whose stored read begins next. REQs have one line and COUNTs another.
//
// A connection has `of_connection_max` reads at once, and pages on their way to its client count among them.
// The process has `in_all_max`; a connection that could begin a read beyond that stands in line. Clients take
// turns, by one read each, and the connections of a client take turns among themselves: a client that asks
// for much waits itself, over however many connections, and holds nobody else up.
//
// A client also has a budget of time for its reads: `budget` for a start, and `budget` for every minute. One
// that has used it up waits behind those that have not, and leaves them a quarter of the places (one at
// least, where there are two). Nothing is refused for it, and except for that quarter no place stays empty
// while a client waits.
//
//     ask ──▶ waits ──its turn──▶ under way ──read_ended──▶ over
//       │       │ └──its time is up──▶ refused
//       └───────┴──answered without a read──▶ over
//
// Promise: a job has `patience` from ask() to the end of its read. A job whose time is up before its read has
// begun is refused when its connection's turn comes. Time in which pages that the client has not taken fill
// the connection's places is the client's own and does not count.
//
// Costs a step for each client in line when a read ends, and for each connection of a client in line when one
// leaves. The caller bounds how many jobs of a connection wait. Not thread-safe. The hooks must not destroy a
// Customer or a Client.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/metrics.hpp"

namespace todoke::relay {

template <class Job>
class QueryLine {
 public:
  using Duration = SteadyTime::duration;

  struct Limits {
    std::size_t of_connection_max;
    std::size_t in_all_max;
    // Of a client, for every minute. Zero: as much as it likes.
    std::chrono::milliseconds budget{0};
  };
  struct Hooks {
    // Answers the job without a read; false where that can't be done.
    std::function<bool(Job&)> answer_at_once;
    // Begins a read that ends within `left`; read_ended() has to follow.
    std::function<void(Job, Duration left)> begin_read;
    // Tells the client that the job's time is up.
    std::function<void(Job)> refuse;
  };

  class Customer;
  // What the line knows of one client, who may have many connections. Outlives them, and its reads.
  class Client {
   public:
    // Whether it makes no difference to forget it: nothing is under way, and hardly anything was used.
    [[nodiscard]] bool is_forgettable(SteadyTime now, std::chrono::milliseconds budget) {
      catch_up(now, budget);
      // Without a budget nothing is given back.
      return reads_ == 0 && line_.empty() && (budget == budget.zero() || spent_ <= budget / 100);
    }

   private:
    friend QueryLine;
    // Brings the time up to `now`: each read under way costs its time, and the budget comes back.
    void catch_up(SteadyTime now, Duration budget) {
      const auto passed = now - caught_up_at_;
      caught_up_at_ = now;
      const auto back = std::chrono::duration_cast<Duration>(
          budget * (passed / std::chrono::duration<double>(kBudgetEvery)));
      spent_ = std::max(Duration::zero(), spent_ + static_cast<Duration::rep>(reads_) * passed - back);
    }

    std::deque<Customer*> line_;  // those that may begin a read as soon as it is the client's turn
    bool in_line_ = false;
    std::size_t reads_ = 0;  // under way
    Duration spent_{};
    SteadyTime caught_up_at_{};
  };

  // What the line knows of one connection.
  class Customer {
   public:
    explicit Customer(Client& client) : client_(client) {}
    [[nodiscard]] Client& client() const { return client_; }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    // Nothing waits, and no read is under way.
    [[nodiscard]] bool is_idle() const { return waiting_.empty() && reads_ == 0; }

   private:
    friend QueryLine;
    struct Waiting {
      Job job;
      SteadyTime asked_at;  // on the connection's own clock
    };
    Client& client_;
    std::deque<Waiting> waiting_;
    std::size_t reads_ = 0;  // under way
    std::size_t pages_ = 0;  // on their way to the client
    bool in_line_ = false;
    // The connection's own clock stands still while its client leaves no place for a read.
    std::optional<SteadyTime> still_since_;
    Duration stood_still_{};
  };

  QueryLine(Limits limits, const std::atomic<std::chrono::milliseconds>& patience, const Clock& clock,
            metrics::Gauge& under_way, metrics::Gauge& waiting, Hooks hooks)
      : limits_(limits),
        patience_(patience),
        clock_(clock),
        under_way_gauge_(under_way),
        waiting_gauge_(waiting),
        hooks_(std::move(hooks)) {}

  // A job that needs no read goes before those that wait for one.
  void ask(Customer& customer, Job job) {
    const bool has_page = customer.reads_ + customer.pages_ <= limits_.of_connection_max;
    if (has_page && hooks_.answer_at_once(job)) return;
    customer.waiting_.push_back({std::move(job), own_time(customer)});
    waiting_gauge_.add(1);
    begin_reads(customer);
  }

  // A page goes to the client, and counts as a read until page_done().
  void page_sent(Customer& customer) { change(customer, 0, 1); }
  void page_done(Customer& customer) {
    change(customer, 0, -1);
    begin_reads(customer);
  }

  // `customer` is null when the connection has left meanwhile.
  void read_ended(Client& client, Customer* customer) {
    set_under_way(client, -1);
    if (customer != nullptr) change(*customer, -1, 0);
    serve();
    if (customer != nullptr) begin_reads(*customer);
  }

  // Forgets the jobs that wait and for which `is_meant` holds.
  template <class IsMeant>
  void forget(Customer& customer, const IsMeant& is_meant) {
    const auto gone =
        std::erase_if(customer.waiting_, [&](const auto& waiting) { return is_meant(waiting.job); });
    waiting_gauge_.add(-static_cast<double>(gone));
  }

  // The connection has ended.
  void leave(Customer& customer) {
    forget(customer, [](const Job&) { return true; });
    if (customer.in_line_) std::erase(customer.client_.line_, &customer);
    if (customer.client_.line_.empty() && customer.client_.in_line_) {
      std::erase(line_, &customer.client_);
      customer.client_.in_line_ = false;
    }
  }

 private:
  [[nodiscard]] bool may_begin(const Customer& customer) const {
    return !customer.waiting_.empty() && customer.reads_ + customer.pages_ < limits_.of_connection_max;
  }

  [[nodiscard]] SteadyTime own_time(const Customer& customer) const {
    return customer.still_since_.value_or(clock_.steady()) - customer.stood_still_;
  }

  [[nodiscard]] Duration time_left_of_first(const Customer& customer) const {
    return patience_.load() - (own_time(customer) - customer.waiting_.front().asked_at);
  }

  [[nodiscard]] bool is_first_late(const Customer& customer) const {
    return !customer.waiting_.empty() && time_left_of_first(customer) <= Duration::zero();
  }

  void begin_reads(Customer& customer) {
    while (may_begin(customer)) {
      if (end_without_read(customer)) continue;
      if (!has_place_for(customer.client_)) return stand_in_line(customer);
      begin_read(customer);
    }
  }

  [[nodiscard]] bool is_over_budget(Client& client) const {
    if (limits_.budget == limits_.budget.zero()) return false;
    client.catch_up(clock_.steady(), limits_.budget);
    return client.spent_ > limits_.budget;
  }

  [[nodiscard]] bool has_place_for(Client& client) const {
    if (under_way_ >= limits_.in_all_max) return false;
    return under_way_ + places_kept_ < limits_.in_all_max || !is_over_budget(client);
  }

  // One read for each client in turn.
  void serve() {
    while (auto* client = next_client()) serve_one(*client);
  }

  // Whose turn it is, taken out of the line: the first that has budget left, or else the first; those whose
  // time is up don't need a place. Null: nobody's.
  Client* next_client() {
    auto chosen = line_.end();
    for (auto at = line_.begin(); at != line_.end(); ++at) {
      const bool is_late = is_first_late(*(*at)->line_.front());
      if (!is_late && !has_place_for(**at)) continue;
      if (chosen == line_.end()) chosen = at;
      if (is_late || !is_over_budget(**at)) {
        chosen = at;
        break;
      }
    }
    if (chosen == line_.end()) return nullptr;
    auto* client = *chosen;
    line_.erase(chosen);
    client->in_line_ = false;
    return client;
  }

  void serve_one(Client& client) {
    auto& customer = *client.line_.front();
    client.line_.pop_front();
    customer.in_line_ = false;
    // Before the hooks, which may ask for more.
    if (!client.line_.empty()) stand_in_line(client);
    if (!may_begin(customer)) return;
    if (!end_without_read(customer)) begin_read(customer);
    if (may_begin(customer)) stand_in_line(customer);
  }

  // Answers or refuses the first job that waits, if it needs no read.
  bool end_without_read(Customer& customer) {
    if (hooks_.answer_at_once(customer.waiting_.front().job)) {
      pop_first(customer);
      return true;
    }
    if (!is_first_late(customer)) return false;
    hooks_.refuse(pop_first(customer));
    return true;
  }

  void begin_read(Customer& customer) {
    const auto left = time_left_of_first(customer);
    auto job = pop_first(customer);
    change(customer, 1, 0);
    set_under_way(customer.client_, 1);
    hooks_.begin_read(std::move(job), left);
  }

  Job pop_first(Customer& customer) {
    auto job = std::move(customer.waiting_.front().job);
    customer.waiting_.pop_front();
    waiting_gauge_.add(-1);
    return job;
  }

  void stand_in_line(Customer& customer) {
    if (customer.in_line_) return;
    customer.in_line_ = true;
    customer.client_.line_.push_back(&customer);
    stand_in_line(customer.client_);
  }

  void stand_in_line(Client& client) {
    if (client.in_line_) return;
    client.in_line_ = true;
    line_.push_back(&client);
  }

  void change(Customer& customer, int reads, int pages) {
    const auto now = clock_.steady();
    customer.reads_ += static_cast<std::size_t>(reads);
    customer.pages_ += static_cast<std::size_t>(pages);
    const bool is_still =
        customer.pages_ > 0 && customer.reads_ + customer.pages_ >= limits_.of_connection_max;
    if (is_still == customer.still_since_.has_value()) return;
    if (is_still) {
      customer.still_since_ = now;
    } else {
      customer.stood_still_ += now - *customer.still_since_;
      customer.still_since_.reset();
    }
  }

  void set_under_way(Client& client, int change) {
    client.catch_up(clock_.steady(), limits_.budget);
    client.reads_ += static_cast<std::size_t>(change);
    under_way_ += static_cast<std::size_t>(change);
    under_way_gauge_.set(static_cast<double>(under_way_));
  }

  static constexpr std::chrono::minutes kBudgetEvery{1};

  const Limits limits_;
  // For clients with budget left, where the others would take everything.
  const std::size_t places_kept_ =
      limits_.in_all_max < 2 ? 0 : std::max<std::size_t>(1, limits_.in_all_max / 4);
  const std::atomic<std::chrono::milliseconds>& patience_;
  const Clock& clock_;
  metrics::Gauge& under_way_gauge_;
  metrics::Gauge& waiting_gauge_;
  const Hooks hooks_;
  std::size_t under_way_ = 0;
  std::deque<Client*> line_;  // those that may begin a read as soon as another one has ended
};

}  // namespace todoke::relay
