// Readers: the newest page of a topic, again and again.
#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

constexpr std::size_t kPage = 100;

// Every connection asks for a page, waits for its EOSE, closes the subscription and asks again. The names of
// two subscriptions take turns, so that an event on its way to the closed one is not counted to the next.
class Pages final : public CaseReceiver {
 public:
  Pages(Loop& loop, std::string_view filter, std::size_t connections, CaseResult& result)
      : CaseReceiver(result), loop_(loop), readers_(connections) {
    for (std::size_t i = 0; i < 2; ++i) {
      req_[i] = text_frame(fmt::format(R"(["REQ","{}",{}])", kNames[i], filter));
      close_[i] = text_frame(fmt::format(R"(["CLOSE","{}"])", kNames[i]));
    }
  }

  // Asks for `limit`, then waits for the pages that are under way.
  void run(std::chrono::seconds limit) {
    const Stopwatch watch;
    end_ = std::chrono::steady_clock::now() + limit;
    asking_ = readers_.size();
    for (std::size_t i = 0; i < readers_.size(); ++i) loop_.queue(i, req_[0]);
    loop_.run(
        *this, [&] { return asking_ == 0; }, [](SteadyTime) { return Loop::kNever; },
        [&] { return fmt::format("{} connections wait for an EOSE, after {} pages", asking_, pages_); });
    seconds_ = watch.stop(result());
  }
  [[nodiscard]] double pages_per_s() const { return static_cast<double>(pages_) / seconds_; }
  [[nodiscard]] double events_per_s() const { return static_cast<double>(events_) / seconds_; }

 private:
  static constexpr std::string_view kNames[] = {"page-a", "page-b"};
  struct Reader {
    std::size_t turn = 0;  // which of the two names
    std::size_t events = 0;
  };

  bool on_event(std::size_t connection, const Reply& reply) override {
    auto& reader = readers_[connection];
    if (reply.name != kNames[reader.turn]) return false;
    ++reader.events;
    return true;
  }
  bool on_eose(std::size_t connection, const Reply& reply) override {
    auto& reader = readers_[connection];
    if (reply.name != kNames[reader.turn]) return false;
    if (reader.events != kPage)
      result().problem(fmt::format("a page of {} events instead of {}", reader.events, kPage));
    ++pages_;
    events_ += reader.events;
    loop_.queue(connection, close_[reader.turn]);
    reader = {1 - reader.turn, 0};
    if (std::chrono::steady_clock::now() < end_) {
      loop_.queue(connection, req_[reader.turn]);
    } else {
      --asking_;
    }
    return true;
  }
  bool on_closed(std::size_t connection, const Reply& reply) override {
    // Some relays confirm a CLOSE like this.
    if (reply.name != kNames[readers_[connection].turn]) return false;
    return CaseReceiver::on_closed(connection, reply);
  }

  Loop& loop_;
  std::string req_[2];
  std::string close_[2];
  std::vector<Reader> readers_;
  SteadyTime end_{};
  std::size_t asking_ = 0;  // connections that wait for a page
  std::size_t pages_ = 0;
  std::size_t events_ = 0;
  double seconds_ = 0;
};

void read_pages(Run& run, const std::string& filter, const std::string& key, const std::string& what) {
  for (const std::size_t connections : {std::size_t{1}, std::size_t{8}}) {
    Loop loop(run.options.deflate);
    for (std::size_t i = 0; i < connections; ++i) loop.connect(run.url);
    Pages pages(loop, filter, connections, run.result);
    pages.run(run.options.seconds);
    const auto name = fmt::format("{}_{}", key, connections);
    const auto label = fmt::format("REQ {}, {} connection{}", what, connections, connections == 1 ? "" : "s");
    run.figure(name + "_requests_per_s", label, "requests/s", pages.pages_per_s());
    run.figure(name + "_events_per_s", label, "events/s", pages.events_per_s());
  }
}

}  // namespace

void req(Run& run) {
  // Full pages for the topic and for the one author, also where no other case has run before.
  publish_before(run, 2 * kPage * EventMaker::kAuthors);
  std::string topic;
  append_json_string(topic, run.options.topic);
  read_pages(run, fmt::format(R"({{"#t":[{}],"limit":{}}})", topic, kPage), "req_topic", "topic");
  read_pages(run,
             fmt::format(R"({{"#t":[{}],"kinds":[1],"authors":["{}"],"limit":{}}})", topic,
                         run.events.author_hex(), kPage),
             "req_author", "topic, kind, author");
}

}  // namespace todoke::bench
