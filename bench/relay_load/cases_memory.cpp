// What connections and subscriptions that do nothing take of a relay's memory.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

// The relay gives back what the handshakes needed.
constexpr std::chrono::seconds kSettles{2};

double resident_kib(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(line.find_first_of("0123456789")));
  }
  throw CaseFailed(fmt::format("the memory of process {} can't be read", pid));
}

double settled_kib(int pid) {
  std::this_thread::sleep_for(kSettles);
  return resident_kib(pid);
}

// Opens subscriptions, one after the other on all connections, and waits for every EOSE.
class Asking final : public CaseReceiver {
 public:
  using CaseReceiver::CaseReceiver;

  void run(Loop& loop, const std::string& topic, std::size_t connections, std::size_t first,
           std::size_t last) {
    const auto wanted = answered_ + connections * (last - first);
    for (auto i = first; i < last; ++i) {
      std::string message = fmt::format(R"(["REQ","idle-{}",{{"#t":[)", i);
      append_json_string(message, topic);
      message += fmt::format(R"(],"kinds":[1],"authors":["{:064x}"],"limit":0}}])", i + 1);
      for (std::size_t c = 0; c < connections; ++c) loop.queue(c, text_frame(message));
    }
    loop.run(
        *this, [&] { return answered_ == wanted; }, [](SteadyTime) { return Loop::kNever; },
        [&] { return fmt::format("{} of {} subscriptions had an EOSE", answered_, wanted); });
  }

 private:
  bool on_eose(std::size_t /*connection*/, const Reply& /*reply*/) override {
    ++answered_;
    return true;
  }
  bool on_event(std::size_t /*connection*/, const Reply& /*reply*/) override { return false; }

  std::size_t answered_ = 0;
};

}  // namespace

void memory(Run& run) {
  constexpr std::size_t kWarm = 100;  // what the first ones need stays
  constexpr std::size_t kFurther = 9;
  const auto pid = run.options.pid;
  if (pid == 0) throw CaseFailed("--pid says whose memory is measured");
  const auto count = run.options.subscribers;
  Loop warm(run.options.deflate);
  for (std::size_t i = 0; i < kWarm; ++i) warm.connect(run.url);
  const double before = settled_kib(pid);
  Loop loop(run.options.deflate);
  for (std::size_t i = 0; i < count; ++i) loop.connect(run.url);
  const double connected = settled_kib(pid);
  Asking asking(run.result);
  asking.run(loop, run.options.topic, count, 0, 1);
  const double subscribed = settled_kib(pid);
  asking.run(loop, run.options.topic, count, 1, 1 + kFurther);
  const double further = settled_kib(pid);
  const auto each = static_cast<double>(count);
  run.figure("memory_connection_kib", fmt::format("memory, {} connections, each", count), "KiB",
             (connected - before) / each);
  run.figure("memory_subscribed_kib", "memory, a connection with a subscription", "KiB",
             (subscribed - before) / each);
  run.figure("memory_subscription_kib", "memory, each further subscription", "KiB",
             (further - subscribed) / each / kFurther);
}

}  // namespace todoke::bench
