// A broker behind HTTP that writes down what it got. It honours Idempotency-Key: the first copy of an order
// that it takes or refuses decides, and later ones get the same answer or "duplicate order". The rest is as
// bad as the weather: answers that are lost or can't be read, 429, 5xx, silence, whole outages. What it
// decides is in the book before anything of an answer leaves.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "draw.hpp"
#include "harness/http_rig.hpp"

namespace todoke::test {

class Broker {
 public:
  // `answer_max`: how long workers wait for an answer.
  Broker(std::uint64_t seed, std::chrono::milliseconds answer_max);

  struct Entry {
    int copies = 0;          // POSTs with this key
    int marked = 0;          // those that say that they may be a second one
    int unmarked = 0;        // those that had to say so and did not
    int unknown = 0;         // answers to GETs that there is no such order
    bool doubtful = false;   // a POST got no answer, or none that says what became of it
    bool is_cursed = false;  // one that always fails, until its attempts are used up
    std::string verdict;     // executed, refused, or none yet
    std::string qty;         // of the copy that decided
    std::chrono::system_clock::time_point at{};
  };
  [[nodiscard]] std::map<std::string, Entry> book();
  [[nodiscard]] std::string url(const std::string& target) const { return server_.url(target); }

  // From here on every answer is a good one.
  void clear_up();
  // Nobody there (503 to everything), until end_outage(); how many requests came meanwhile.
  void begin_outage();
  int end_outage();

  // Called once, on the thread of the broker: when the next POST has arrived and nothing is decided, or when
  // its answer is about to leave.
  enum class Moment { arrived, answered };
  using Action = std::function<void(const std::string& key)>;
  void at_next(Moment moment, Action action);

  // Requests that arrive from now on with a key of `keys` (none: with any) are decided, and answered not
  // before release().
  void hold(std::set<std::string> keys);
  void release();
  // The keys of requests that are not answered yet.
  [[nodiscard]] std::set<std::string> waiting();

 private:
  enum class Mood { good, lost, silent, busy, down, broken, failing, refusing };

  Mood draw_mood();
  using Answering = Task<net::Response> (Broker::*)(net::Request&, std::string);
  Task<net::Response> serve(net::Request& request, std::string key, Answering answering);
  Task<net::Response> take(net::Request& request, std::string key);
  Task<net::Response> show(net::Request& request, std::string key);
  void decide(Entry& entry, Mood mood, const std::string& body);
  [[nodiscard]] net::Response answer(const Entry& entry, bool was_decided);
  void act(Moment moment, const std::string& key);
  Task<void> while_held(std::string key);

  const std::chrono::milliseconds answer_max_;
  std::mutex mutex_;
  Random random_;
  int bad_percent_;
  bool is_clear_ = false;
  bool is_out_ = false;
  int outage_requests_ = 0;
  std::map<std::string, Entry> book_;
  std::map<Moment, Action> actions_;
  std::set<std::string> held_keys_;
  std::shared_ptr<Signal> held_;  // of those that are held
  std::multiset<std::string> waiting_;
  net::test::Rig server_;
};

}  // namespace todoke::test
