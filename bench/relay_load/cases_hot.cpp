// Questions about a topic with many events, one at a time: the newest, a rare kind or author among them, and
// pages far back.
#include <chrono>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

// Asks, waits for the EOSE, closes and asks again.
class Questions final : public CaseReceiver {
 public:
  Questions(Loop& loop, const std::string& filter, CaseResult& result)
      : CaseReceiver(result), loop_(loop), req_(text_frame(fmt::format(R"(["REQ","hot",{}])", filter))) {}

  Latencies run(std::chrono::seconds limit) {
    const Stopwatch watch;
    end_ = std::chrono::steady_clock::now() + limit;
    ask();
    loop_.run(
        *this, [&] { return is_over_; }, [](SteadyTime) { return Loop::kNever; },
        [] { return std::string("an EOSE did not come"); });
    watch.stop(result());
    if (events_ == 0) result().problem("a question without an answer");
    return std::move(latencies_);
  }

 private:
  void ask() {
    asked_at_ = std::chrono::steady_clock::now();
    loop_.queue(0, req_);
  }
  bool on_event(std::size_t /*connection*/, const Reply& /*reply*/) override {
    ++events_;
    return true;
  }
  bool on_eose(std::size_t /*connection*/, const Reply& /*reply*/) override {
    const auto now = std::chrono::steady_clock::now();
    latencies_.add(now - asked_at_);
    loop_.queue(0, close_);
    is_over_ = now >= end_;
    if (!is_over_) ask();
    return true;
  }

  Loop& loop_;
  const std::string req_;
  const std::string close_ = text_frame(R"(["CLOSE","hot"])");
  SteadyTime asked_at_{};
  SteadyTime end_{};
  Latencies latencies_;
  std::size_t events_ = 0;
  bool is_over_ = false;
};

void question(Run& run, const std::string& more, const std::string& key, const std::string& what) {
  std::string filter = R"({"#t":[)";
  append_json_string(filter, run.options.topic);
  filter += "]," + more + "}";
  Loop loop;
  loop.connect(run.url);
  auto latencies = Questions(loop, filter, run.result).run(run.options.seconds);
  run.figure(key + "_p50_ms", fmt::format("hot topic, {}, p50", what), "ms", latencies.quantile(0.5));
  run.figure(key + "_p99_ms", fmt::format("hot topic, {}, p99", what), "ms", latencies.quantile(0.99));
}

}  // namespace

void hot(Run& run) {
  constexpr std::size_t kPart = 20'000;  // what is signed and held at a time
  constexpr std::size_t kRare = 20;
  publish(run, run.events.make_rare(kRare));
  for (std::size_t sent = 0; sent < run.options.stored; sent += kPart)
    publish(run, run.events.make_spread(std::min(kPart, run.options.stored - sent), sent));
  const auto far_back = EventMaker::time_of_spread(run.options.stored * 9 / 10);
  question(run, R"("limit":500)", "hot_newest", "newest 500");
  question(run, R"("kinds":[7],"limit":20)", "hot_rare_kind", "a rare kind");
  question(run, fmt::format(R"("authors":["{}"],"limit":20)", run.events.rare_author_hex()),
           "hot_rare_author", "a rare author");
  question(run, fmt::format(R"("until":{},"limit":500)", far_back), "hot_deep", "500 far back");
}

}  // namespace todoke::bench
