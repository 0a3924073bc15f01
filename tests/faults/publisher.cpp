#include "faults/publisher.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "harness/todoke_process.hpp"
#include "websocket/raw_client.hpp"

namespace todoke::test {
namespace {

// Frames that go out in one write.
constexpr std::size_t kWriteFramesMax = 64;

}  // namespace

Events make_notes(std::size_t count, std::size_t content_bytes) {
  static std::atomic<std::size_t> calls = 0;
  static const auto key = nostr::SecretKey::generate();
  const auto prefix = std::to_string(++calls) + "/";
  Events events;
  for (std::size_t i = 0; i < count; ++i) {
    auto content = prefix + std::to_string(i);
    content.resize(std::max(content.size(), content_bytes), '.');
    events.push_back(note(key, std::move(content)));
  }
  return events;
}

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

std::string event_frame(const nostr::Event& event) {
  return net::encode(net::text("[\"EVENT\"," + std::string(event.json()) + "]"));
}

Publisher::Publisher(const std::string& address, Events events, std::size_t in_flight_max)
    : events_(std::move(events)), thread_([this, port = port_of(address), in_flight_max] {
        try {
          run(port, in_flight_max);
        } catch (const std::exception& error) {
          failure_ = error.what();  // a connection that dies is what many tests are about
        }
      }) {}

Publisher::~Publisher() {
  if (thread_.joinable()) thread_.join();
}

void Publisher::run(std::uint16_t port, std::size_t in_flight_max) {
  net::RawClient client(port);
  std::size_t sent = 0;
  while (answered_ < events_.size()) {
    std::string frames;
    for (std::size_t i = 0; i < kWriteFramesMax && sent < events_.size() && sent - answered_ < in_flight_max;
         ++i) {
      frames += event_frame(events_[sent++]);
    }
    client.write(frames);
    const auto frame = client.read();
    if (!frame || frame->opcode == net::kClose) return;
    if (frame->opcode == net::kPing) client.send(net::pong(frame->payload));
    if (!frame->payload.starts_with("[\"OK\"")) continue;
    auto ok = parse_ok(frame->payload);
    auto& answers = answers_[ok.id];
    answers.push_back(ok);
    ++answered_;
    if (ok.accepted) ++accepted_;
  }
}

const Publisher::Answers& Publisher::finish() {
  if (thread_.joinable()) thread_.join();
  return answers_;
}

std::map<std::string, std::size_t> Publisher::sent() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& event : events_) ++counts[event.id().hex()];
  return counts;
}

Load::Load(const std::string& address, std::size_t publishers, std::size_t events_each) {
  std::vector<Events> events;
  for (std::size_t i = 0; i < publishers; ++i) events.push_back(make_notes(events_each));
  for (auto& list : events) publishers_.push_back(std::make_unique<Publisher>(address, std::move(list)));
}

std::size_t Load::accepted() const {
  return std::accumulate(publishers_.begin(), publishers_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& publisher) { return sum + publisher->accepted(); });
}

void Load::wait_until_accepted(std::size_t count) const {
  wait_until(std::to_string(count) + " accepted events", [&] { return accepted() >= count; });
}

Load::Outcome Load::finish() {
  Outcome outcome;
  for (const auto& publisher : publishers_) {
    const auto& answers = publisher->finish();
    if (!publisher->failure().empty()) outcome.failures.push_back(publisher->failure());
    outcome.unanswered += publisher->sent().size() - answers.size();
    for (const auto& [id, oks] : answers) {
      const auto& ok = oks.front();
      const bool stored = ok.accepted && (ok.text.empty() || ok.text == "duplicate: already stored");
      const bool refused = !ok.accepted && ok.text == "error: not stored, try again";
      if (stored) outcome.accepted.insert(id);
      if (refused) outcome.refused.insert(id);
      if (oks.size() != 1 || (!stored && !refused)) outcome.odd.push_back(id + " " + ok.text);
    }
  }
  return outcome;
}

}  // namespace todoke::test
