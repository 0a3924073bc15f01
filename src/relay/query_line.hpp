// Whose stored read begins next. REQs have one line and COUNTs another.
//
// A connection has `of_connection_max` reads at once, and pages on their way to its client count among them.
// The process has `in_all_max`; a connection that could begin a read beyond that stands in line and gets one
// read when its turn comes. So a connection that asks for much waits itself, and holds nobody else up.
//
//     ask ──▶ waits ──its turn──▶ under way ──read_ended──▶ over
//       │       │ └──its time is up──▶ refused
//       └───────┴──answered without a read──▶ over
//
// Promise: a job has `patience` from ask() to the end of its read. A job whose time is up before its read has
// begun is refused when its connection's turn comes. Time in which pages that the client has not taken fill
// the connection's places is the client's own and does not count.
//
// Costs O(1) for each call, and a step for each connection in line when one leaves. The caller bounds how
// many jobs of a connection wait. Not thread-safe. The hooks must not destroy a Customer.
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
  };
  struct Hooks {
    // Answers the job without a read; false where that can't be done.
    std::function<bool(Job&)> answer_at_once;
    // Begins a read that ends within `left`; read_ended() has to follow.
    std::function<void(Job, Duration left)> begin_read;
    // Tells the client that the job's time is up.
    std::function<void(Job)> refuse;
  };

  // What the line knows of one connection.
  class Customer {
   public:
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

   private:
    friend QueryLine;
    struct Waiting {
      Job job;
      SteadyTime asked_at;  // on the connection's own clock
    };
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
  void read_ended(Customer* customer) {
    set_under_way(under_way_ - 1);
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
    if (customer.in_line_) std::erase(line_, &customer);
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
      if (under_way_ >= limits_.in_all_max) return stand_in_line(customer);
      begin_read(customer);
    }
  }

  // One read for each connection in turn.
  void serve() {
    while (!line_.empty()) {
      auto& customer = *line_.front();
      if (under_way_ >= limits_.in_all_max && !is_first_late(customer)) return;
      line_.pop_front();
      customer.in_line_ = false;
      if (!may_begin(customer)) continue;
      if (!end_without_read(customer)) begin_read(customer);
      if (may_begin(customer)) stand_in_line(customer);
    }
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
    set_under_way(under_way_ + 1);
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
    line_.push_back(&customer);
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

  void set_under_way(std::size_t count) {
    under_way_ = count;
    under_way_gauge_.set(static_cast<double>(count));
  }

  const Limits limits_;
  const std::atomic<std::chrono::milliseconds>& patience_;
  const Clock& clock_;
  metrics::Gauge& under_way_gauge_;
  metrics::Gauge& waiting_gauge_;
  const Hooks hooks_;
  std::size_t under_way_ = 0;
  std::deque<Customer*> line_;  // those that may begin a read as soon as another one has ended
};

}  // namespace todoke::relay
