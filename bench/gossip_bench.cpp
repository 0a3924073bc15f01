// Gossip between two nodes on loopback, each with a database of its own. Started by scripts/bench gossip.
//
//   gossip_bench [EVENTS]   that are compared (100,000)
//
//   delay    from publishing until a subscriber has the event: on the same node, and one hop away
//   rate     a burst that the first node sends at several paces: how much of it arrives by gossip alone, and
//            that all of it is there in the end
//   compare  a node with EVENTS beside one that lacks 1 % of them: rounds, bytes, seconds
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "harness/metric.hpp"
#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"
#include "own_node.hpp"

namespace todoke::bench {
namespace {

using Steady = std::chrono::steady_clock;
using Events = std::vector<nostr::Event>;

constexpr int kDelayEvents = 2'000;
constexpr int kBurstEvents = 10'000;
constexpr std::size_t kAtOnce = 200;
constexpr int kCompareEvents = 100'000;
constexpr int kMissingEvery = 100;
constexpr std::chrono::seconds kPatience(120);
constexpr const char* kLive = R"({"#t":["kukuri:global"],"limit":0})";

double seconds_since(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

void wait_for(const std::string& what, const std::function<bool()>& condition) {
  const auto until = Steady::now() + kPatience;
  while (!condition()) {
    if (Steady::now() > until) throw std::runtime_error("gave up waiting for " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

class Node {
 public:
  explicit Node(std::vector<std::string> flags = {}) : node_(with_gossip(std::move(flags))) {}

  [[nodiscard]] std::string url() const { return "ws://" + node_.address() + "/relay"; }
  [[nodiscard]] std::string peer() const { return read_json(get("/gossip")).value().member("peer")->text; }
  void dial(const Node& other) {
    const auto peer = other.peer();
    const auto at = peer.find('@');
    node_.sql(fmt::format("INSERT INTO cn_relay.gossip_peers (node_id, address) VALUES ('{}', '{}')",
                          peer.substr(0, at), peer.substr(at + 1)));
  }
  // A series of todoke_gossip_…
  [[nodiscard]] double metric(const std::string& series) const {
    return test::metric_in(get("/metrics"), "todoke_gossip_" + series).value_or(0);
  }
  // What was filled before is no part of what is measured.
  void settle() const {
    wait_for("a neighbour", [&] { return metric(R"(fills_total{outcome="done"})") >= 1; });
  }
  void import_file(const std::string& file) {
    const auto done = test::run_command({test::todoke_binary(), "import", file},
                                        {"TODOKE_DATA_DIR=" + node_.data_dir().string()});
    if (done.code != 0) throw std::runtime_error(done.err);
  }

 private:
  static std::vector<std::string> with_gossip(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--gossip.enabled", "on", "--gossip.listen", "127.0.0.1:0"});
    return flags;
  }
  [[nodiscard]] std::string get(const std::string& path) const {
    return test::http_get("http://" + node_.internal_address() + path).body;
  }
  OwnNode node_;
};

Events events(int count) {
  const auto key = nostr::SecretKey::generate();
  Events all;
  all.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all.push_back(test::note(key, fmt::format("event {} {:200}", i, "")));
  return all;
}

// The middle of the time from publishing until `at` has it, in milliseconds.
double delay(const Node& from, const Node& at) {
  test::NostrClient publisher(from.url());
  test::NostrClient subscriber(at.url());
  subscriber.request("live", kLive);
  std::vector<double> millis;
  for (const auto& event : events(kDelayEvents)) {
    const auto begin = Steady::now();
    publisher.send(fmt::format(R"(["EVENT",{}])", event.json()));
    if (test::id_in(subscriber.live("live")) != event.id().hex()) throw std::runtime_error("another event");
    millis.push_back(seconds_since(begin) * 1'000);
    publisher.receive(R"(["OK")");
  }
  std::sort(millis.begin(), millis.end());
  return millis[millis.size() / 2];
}

void measure_delay() {
  Node a;
  Node b;
  b.dial(a);
  b.settle();
  const auto same = delay(a, a);
  const auto hop = delay(a, b);
  fmt::print("delay    same node p50 {:.2f} ms, one hop p50 {:.2f} ms: {:.2f} times\n", same, hop,
             hop / same);
}

void publish_all(const Node& node, const Events& all) {
  test::NostrClient client(node.url());
  for (std::size_t first = 0; first < all.size(); first += kAtOnce) {
    const auto end = std::min(first + kAtOnce, all.size());
    for (auto i = first; i < end; ++i) client.send(fmt::format(R"(["EVENT",{}])", all[i].json()));
    for (auto i = first; i < end; ++i) client.receive(R"(["OK")");
  }
}

void measure_rate(int pace) {
  Node a({"--gossip.sent_per_second", std::to_string(pace)});
  Node b({"--gossip.events_per_second", "1000000"});
  b.dial(a);
  b.settle();
  const auto burst = events(kBurstEvents);
  const auto begin = Steady::now();
  publish_all(a, burst);
  const auto published = seconds_since(begin);
  wait_for("the burst to be sent", [&] { return a.metric("sent_total") >= kBurstEvents; });
  const auto sent = seconds_since(begin);
  wait_for("the burst", [&] {
    return b.metric(R"(taken_total{outcome="new"})") + b.metric(R"(filled_total{outcome="new"})") >=
           kBurstEvents;
  });
  fmt::print(
      "rate     paced {:>6}/s: taken in {:.1f} s ({:.0f}/s), sent in {:.1f} s ({:.0f}/s), there in {:.1f} s; "
      "{:.0f} of {} by gossip, {:.0f} filled, {:.0f} lags\n",
      pace, published, kBurstEvents / published, sent, kBurstEvents / sent, seconds_since(begin),
      b.metric(R"(taken_total{outcome="new"})"), kBurstEvents, b.metric(R"(filled_total{outcome="new"})"),
      b.metric("lagged_total"));
}

void write_lines(const std::string& file, const Events& all, int left_out_every) {
  std::ofstream out(file);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (left_out_every == 0 || i % static_cast<std::size_t>(left_out_every) != 0)
      out << all[i].json() << '\n';
  }
}

void measure_compare(int count) {
  const test::TempFolder folder;
  const auto whole = (folder.path() / "whole").string();
  const auto part = (folder.path() / "part").string();
  {
    const auto all = events(count);
    write_lines(whole, all, 0);
    write_lines(part, all, kMissingEvery);
  }
  Node a;
  Node b;
  a.import_file(whole);
  b.import_file(part);
  const auto begin = Steady::now();
  b.dial(a);
  b.settle();
  fmt::print(
      "compare  {} events with {}: {:.0f} were lacking, {:.0f} came; {:.0f} rounds, {:.0f} KB out, {:.0f} KB "
      "in (events are among them), {:.2f} s from dialling on\n",
      count - count / kMissingEvery, count, count / static_cast<double>(kMissingEvery),
      b.metric(R"(filled_total{outcome="new"})"), b.metric("fill_rounds_total"),
      b.metric(R"(fill_bytes_total{way="out"})") / 1'000, b.metric(R"(fill_bytes_total{way="in"})") / 1'000,
      seconds_since(begin));
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  using namespace todoke::bench;
  try {
    const int count = argc > 1 ? std::atoi(argv[1]) : kCompareEvents;
    measure_delay();
    for (const int pace : {2'000, 5'000, 20'000}) measure_rate(pace);
    measure_compare(count);
    return 0;
  } catch (const std::exception& error) {
    std::fputs(fmt::format("gossip_bench: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
