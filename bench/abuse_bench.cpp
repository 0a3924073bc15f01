// What greedy anonymous readers leave of a node that also takes orders: the time of an order until it is
// settled and of an event until its OK, alone and beside clients that keep as many COUNTs and REQs under way
// as a connection may, each with as many filters as a message may have, over one large topic. Rate limits are
// off. Then what attacks of other kinds (abuse_load/attacks.hpp) leave of a node as it comes, with its
// limits: the time of an event until its OK, for a client that publishes two a second. Started by
// bench/abuse.
//
//   abuse_bench [SECONDS]   of each phase
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "abuse_load/attacks.hpp"
#include "orders_load/http_load.hpp"
#include "own_node.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/loop.hpp"
#include "relay_load/wire.hpp"

namespace todoke::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kGreedy = 20;
constexpr std::size_t kEvents = 60'000;
constexpr std::size_t kFilters = 20;
constexpr std::size_t kLimit = 5'000;  // the most that a node gives for a filter
// COUNTs of a client that are under way, and as many REQs: what the node works on at once for a connection.
constexpr std::size_t kInFlight = 4;
constexpr std::chrono::milliseconds kBetweenOrders(20);
// Greedy clients are at full speed before measuring begins.
constexpr std::chrono::seconds kWarmUp(3);

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Filters that all match every event of the topic, and no two of which are equal.
std::string greedy_filters(const std::string& topic) {
  const auto tomorrow = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch() + std::chrono::hours(24))
                            .count();
  std::string text;
  for (std::size_t i = 0; i < kFilters; ++i) {
    text += fmt::format(R"(,{{"#t":["{}"],"until":{},"limit":{}}})", topic,
                        tomorrow + static_cast<std::int64_t>(i), kLimit);
  }
  return text;
}

// Every answer is followed by the same question again.
class Greedy final : public Receiver {
 public:
  Greedy(Loop& loop, const std::string& topic) : loop_(loop), filters_(greedy_filters(topic)) {}

  void ask_everything(std::size_t connection) {
    for (std::size_t i = 0; i < kInFlight; ++i) {
      ask(connection, "COUNT", fmt::format("count-{}", i));
      ask(connection, "REQ", fmt::format("req-{}", i));
    }
  }

  bool on_message(std::size_t connection, std::string_view message) override {
    const auto reply = read_reply(message);
    if (reply.type == ReplyType::eose) {
      ++pages;
      ask(connection, "REQ", reply.name);
    } else if (reply.type == ReplyType::closed) {
      ++refusals;
      ask(connection, reply.name.starts_with("count") ? "COUNT" : "REQ", reply.name);
    } else if (message.starts_with(R"(["COUNT",")")) {
      ++counts;
      ask(connection, "COUNT", message.substr(10, message.find('"', 10) - 10));
    } else if (reply.type == ReplyType::event) {
      ++events;
    }
    return true;
  }

  std::atomic<std::uint64_t> counts = 0;
  std::atomic<std::uint64_t> pages = 0;
  std::atomic<std::uint64_t> refusals = 0;
  std::atomic<std::uint64_t> events = 0;

 private:
  void ask(std::size_t connection, std::string_view verb, std::string_view sub) {
    loop_.queue(connection, text_frame(fmt::format(R"(["{}","{}"{}])", verb, sub, filters_)));
  }

  Loop& loop_;
  const std::string filters_;
};

// Work on a thread of its own; what it threw comes out of join().
class Worker {
 public:
  explicit Worker(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          try {
            work();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  void join() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::thread thread_;
};

struct Measured {
  Latencies settled;  // of orders, from the POST
  CaseResult ok;
};

void measure_orders(const std::string& address, const std::string& prefix, Steady::time_point until,
                    Latencies& settled) {
  HttpConnection connection(address);
  for (std::size_t number = 0; Steady::now() < until; ++number) {
    const auto key = fmt::format("{}-{:06}", prefix, number);
    const auto body = fmt::format(
        R"({{"instrument":"BTC-USD","side":"BUY","qty":0.25,"price":101.5,"time_in_force":"IOC","idempotency_key":"{}"}})",
        key);
    const auto began = Steady::now();
    const auto post = fmt::format(
        "POST /do/order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: "
        "{}\r\n"
        "Content-Length: {}\r\n\r\n{}",
        key, body.size(), body);
    if (connection.ask(post) != 201) throw std::runtime_error("an order was refused: " + connection.answer());
    const auto get = fmt::format("GET /do/order/{}?wait=30s HTTP/1.1\r\nHost: localhost\r\n\r\n", key);
    if (connection.ask(get) != 200 || connection.answer().find(R"("succeeded")") == std::string::npos)
      throw std::runtime_error("an order was not settled: " + connection.answer());
    settled.add(Steady::now() - began);
    std::this_thread::sleep_for(kBetweenOrders);
  }
}

// What was published before has reached the search index: the node is idle.
void wait_until_indexed(const OwnNode& node) {
  constexpr std::string_view kRows = "\ntodoke_consumer_rows_total{consumer=\"index-v1\"} ";
  HttpConnection connection(node.internal_address());
  for (;;) {
    connection.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const auto& text = connection.answer();
    const auto at = text.find(kRows);
    const auto rows = at == std::string::npos ? 0 : std::strtod(text.c_str() + at + kRows.size(), nullptr);
    if (rows >= static_cast<double>(kEvents)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// Orders and events at the same time, one of each at a time.
Measured measure(const OwnNode& node, const Options& options, EventMaker& events, const std::string& phase) {
  Measured measured;
  const auto url = "ws://" + node.address() + "/relay";
  Run run{options, url, events, measured.ok};
  Worker publisher([&] { ok_idle(run); });
  Worker orders(
      [&] { measure_orders(node.address(), phase, Steady::now() + options.seconds, measured.settled); });
  publisher.join();
  orders.join();
  return measured;
}

// A line of /proc/PID/status in MiB, such as VmHWM, the most that ever was in memory.
double memory_mib(pid_t pid, const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::strtod(line.c_str() + name.size() + 1, nullptr) / 1024;
  }
  throw std::runtime_error("no memory is told of the node");
}

std::string row(const std::string& what, double idle, double abused) {
  return fmt::format("{:<28}{:>10.2f}{:>12.2f}{:>10.2f}x\n", what, idle, abused, abused / idle);
}

double figure(const CaseResult& result, std::size_t index) {
  return result.figures.at(index).value;
}

CaseResult publish_slowly(const OwnNode& node, const Options& options, EventMaker& events) {
  CaseResult result;
  const auto url = "ws://" + node.address() + "/relay";
  Run run{options, url, events, result};
  ok_load(run);
  return result;
}

void run_attacks(std::chrono::seconds seconds) {
  Options options;
  options.seconds = seconds;
  options.rate = 2;  // what a client may publish: 120 a minute
  const OwnNode node({"--limits.rates", "on"});
  const auto& address = node.address();
  const auto port = static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  EventMaker events(options.topic, options.event_bytes);
  const auto idle = publish_slowly(node, options, events);
  print(fmt::format(
      "\nan event beside attacks of two threads each, on a node with its limits\n\n{:<28}{:>10}{:>12}"
      "{:>11}{:>14}\n{:<28}{:>47.0f}\n",
      "OK, p50, ms", "idle", "abused", "ratio", "memory, MiB", "", memory_mib(node.pid(), "VmHWM")));
  for (const auto& attack : attacks()) {
    std::atomic<bool> over = false;
    const auto work = [&] { attack.run(port, over); };
    Worker one(work);
    Worker two(work);
    std::this_thread::sleep_for(kWarmUp);
    CaseResult abused;
    std::exception_ptr failure;
    try {
      abused = publish_slowly(node, options, events);
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
    one.join();
    two.join();
    if (failure) std::rethrow_exception(failure);
    auto line = row(attack.name, figure(idle, 0), figure(abused, 0));
    line.pop_back();
    print(fmt::format("{}{:>14.0f}\n", line, memory_mib(node.pid(), "VmHWM")));
  }
}

void run(std::chrono::seconds seconds) {
  Options options;
  options.seconds = seconds;
  const OwnNode node;
  EventMaker events(options.topic, options.event_bytes);
  {
    CaseResult filled;
    const auto url = "ws://" + node.address() + "/relay";
    Run fill{options, url, events, filled};
    publish_before(fill, kEvents);
  }
  wait_until_indexed(node);
  auto idle = measure(node, options, events, "idle");
  const auto memory_idle = memory_mib(node.pid(), "VmHWM");

  Loop loop;
  Greedy greedy(loop, options.topic);
  for (std::size_t i = 0; i < kGreedy; ++i)
    greedy.ask_everything(loop.connect("ws://" + node.address() + "/relay"));
  std::atomic<bool> done = false;
  Worker abuse([&] {
    loop.run(
        greedy, [&] { return done.load(); },
        [](SteadyTime now) { return now + std::chrono::milliseconds(100); },
        [] { return std::string("greedy clients wait for answers"); });
  });
  std::this_thread::sleep_for(kWarmUp);
  const auto began = Steady::now();
  Measured abused;
  try {
    abused = measure(node, options, events, "abused");
  } catch (...) {
    done = true;
    abuse.join();
    throw;
  }
  const auto took = std::chrono::duration<double>(Steady::now() - began + kWarmUp).count();
  done = true;
  abuse.join();
  const auto memory_abused = memory_mib(node.pid(), "VmHWM");

  print(fmt::format("an order and an event at a time beside {} greedy clients, topic of {} events\n\n",
                    kGreedy, kEvents));
  print(fmt::format("{:<28}{:>10}{:>12}{:>11}\n", "", "idle", "abused", "ratio"));
  print(row("order settled, p50, ms", idle.settled.quantile(0.5), abused.settled.quantile(0.5)));
  print(row("order settled, p99, ms", idle.settled.quantile(0.99), abused.settled.quantile(0.99)));
  print(row("OK, p50, ms", figure(idle.ok, 0), figure(abused.ok, 0)));
  print(row("OK, p99, ms", figure(idle.ok, 1), figure(abused.ok, 1)));
  print(row("most memory, MiB", memory_idle, memory_abused));
  print(fmt::format(
      "\nthe greedy clients had {:.1f} COUNTs, {:.1f} REQs ({:.0f} events) and {:.1f} refusals a second\n",
      static_cast<double>(greedy.counts) / took, static_cast<double>(greedy.pages) / took,
      static_cast<double>(greedy.events) / took, static_cast<double>(greedy.refusals) / took));
  print(fmt::format("{} orders and {} orders beside them\n", idle.settled.size(), abused.settled.size()));
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  constexpr int kSeconds = 15;
  try {
    const int seconds = argc > 1 ? std::atoi(argv[1]) : kSeconds;
    if (seconds < 1) throw std::runtime_error("SECONDS is a number from 1 up");
    todoke::bench::run(std::chrono::seconds(seconds));
    todoke::bench::run_attacks(std::chrono::seconds(seconds));
    return 0;
  } catch (const std::exception& error) {
    std::fputs((std::string("bench/abuse: ") + error.what() + "\n").c_str(), stderr);
    return 1;
  }
}
