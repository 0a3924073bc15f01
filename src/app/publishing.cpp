#include "app/publishing.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/command.hpp"

namespace todoke::app {
namespace {

// For the answer to an event, which comes after its commit.
constexpr std::chrono::seconds kOkLimit(60);
constexpr std::chrono::seconds kPauseMost(16);
// Pauses in a row after which nothing was taken: two minutes.
constexpr int kPausesMax = 10;

std::string named(const Outgoing& event) {
  return event.line == 0 ? event.id : fmt::format("line {} ({})", event.line, event.id);
}

}  // namespace

Outgoing outgoing_of(std::uint64_t line, const nostr::Event& event) {
  return {line, event.id().hex(), std::string(event.json())};
}

Task<void> Publishing::publish(Outgoing event) {
  while (in_flight_.size() + held_.size() >= kInFlightMax) co_await go_on();
  co_await send(std::move(event));
}

Task<void> Publishing::finish() {
  while (!in_flight_.empty() || !held_.empty()) co_await go_on();
}

void Publishing::unreadable(std::uint64_t line, std::string_view why) {
  ++counts_.unreadable;
  note(fmt::format("line {}: {}", line, why));
}

Task<void> Publishing::go_on() {
  if (!in_flight_.empty()) {
    co_await take_answer();
    co_return;
  }
  co_await sleep_for(pause_);
  pause_ = std::min(pause_ * 2, kPauseMost);
  ++pauses_;
  auto again = std::exchange(held_, {});
  for (auto& event : again) co_await send(std::move(event));
}

Task<void> Publishing::take_answer() {
  auto message = co_await relay_.receive(kOkLimit);
  if (!message) {
    throw UserError(
        fmt::format("the relay has closed the connection ({}) with {} events unanswered, the first {}",
                    relay_.end(), in_flight_.size(), named(in_flight_.begin()->second)));
  }
  if (message->verb != nostr::RelayMessage::Verb::ok) co_return;
  const auto found = in_flight_.find(message->subject);
  if (found == in_flight_.end()) co_return;
  auto event = std::move(found->second);
  in_flight_.erase(found);
  co_await judge(std::move(event), std::move(*message));
}

Task<void> Publishing::send(Outgoing event) {
  ++event.tries;
  const auto message = fmt::format(R"(["EVENT",{}])", event.json);
  const auto id = event.id;
  // The same event twice in a row has one answer or two; either way it is there.
  in_flight_.insert_or_assign(id, std::move(event));
  co_await relay_.send(message);
}

Task<void> Publishing::judge(Outgoing event, nostr::RelayMessage answer) {
  if (answer.accepted) {
    pause_ = kPauseFirst;
    pauses_ = 0;
    ++(answer.text.starts_with("duplicate:") ? counts_.known : counts_.taken);
    co_return;
  }
  if (answer.text.starts_with("rate-limited:") && pauses_ < kPausesMax) {
    held_.push_back(std::move(event));
    co_return;
  }
  if (answer.text.starts_with("auth-required:") && event.tries == 1) {
    const bool logged_in = co_await relay_.log_in();
    if (logged_in) {
      co_await send(std::move(event));
      co_return;
    }
  }
  if (++counts_.refused <= told_max_) note(fmt::format("{}: {}", named(event), answer.text));
  if (counts_.refused == told_max_) note("further refusals are only counted");
}

}  // namespace todoke::app
