// A client that sends EVENTs without waiting for their OKs, as fast as the relay takes them, on a thread of
// its own. It goes on until everything is answered or the connection ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/nostr_client.hpp"
#include "nostr/event.hpp"

namespace todoke::test {

// Signed beforehand: signing takes as long as the relay takes for an event.
using Events = std::vector<nostr::Event>;
// Notes that differ from those of every other call.
Events make_notes(std::size_t count, std::size_t content_bytes = 50);

std::uint16_t port_of(const std::string& address);
// The frame of an EVENT message, as a client sends it.
std::string event_frame(const nostr::Event& event);

class Publisher {
 public:
  // `address` is host:port. `in_flight_max` EVENTs wait for their OK at most.
  Publisher(const std::string& address, Events events, std::size_t in_flight_max = 200);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // OKs so far, from any thread.
  [[nodiscard]] std::size_t accepted() const { return accepted_; }
  [[nodiscard]] std::size_t answered() const { return answered_; }

  // Waits for the end and gives the OKs of each event that has any, in their order.
  using Answers = std::map<std::string, std::vector<OkAnswer>>;
  const Answers& finish();
  // After finish: how often each event was sent, whether or not the relay has seen it.
  [[nodiscard]] std::map<std::string, std::size_t> sent() const;
  // After finish: what broke the connection, if it did not last.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  void run(std::uint16_t port, std::size_t in_flight_max);

  Events events_;
  Answers answers_;
  std::string failure_;
  std::atomic<std::size_t> accepted_ = 0;
  std::atomic<std::size_t> answered_ = 0;
  std::thread thread_;
};

// Several of them at once, on one relay.
class Load {
 public:
  Load(const std::string& address, std::size_t publishers, std::size_t events_each);

  [[nodiscard]] std::size_t accepted() const;
  void wait_until_accepted(std::size_t count) const;
  // Waits for the end of all: the ids that got an OK true, and those that got another number of OKs than one
  // or a text that does not belong there.
  struct Outcome {
    std::set<std::string> accepted;
    std::set<std::string> refused;  // `error: not stored, try again`
    std::vector<std::string> odd;
    std::size_t unanswered = 0;
    std::vector<std::string> failures;  // of connections
  };
  Outcome finish();

 private:
  std::vector<std::unique_ptr<Publisher>> publishers_;
};

}  // namespace todoke::test
