#include "app/intake.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "app/command.hpp"
#include "nostr/texts.hpp"

namespace todoke::app {
namespace {

using nostr::Reason;

// When so many events fail in a row, the database has a problem, and not the events.
constexpr std::uint64_t kIntakeFailedMax = 100;
constexpr std::chrono::seconds kLookForRoom(1);

}  // namespace

Task<void> Intake::store_event(std::string json) {
  auto event = import_.check(json);
  if (!event) {
    ++refused_[std::string(event.error())];
    co_return;
  }
  if (storage_.is_full() && no_room_ == NoRoom::fail) throw UserError("the database's disk is full");
  if (storage_.is_full()) note("the database's disk is full: waiting for room");
  while (storage_.is_full()) co_await sleep_for(kLookForRoom);
  if (failed_ > kIntakeFailedMax) throw UserError("the database takes no events");
  ++under_way_;
  event->on_outcome = [this](relay::Outcome became) { outcome(became); };
  co_await import_.offer(std::move(*event));
}

Task<void> Intake::wait_for_outcomes() {
  settled_.reset();
  if (under_way_ > 0) co_await settled_.wait();
}

void Intake::outcome(relay::Outcome became) {
  switch (became) {
    case relay::Outcome::stored:
      ++stored_;
      break;
    case relay::Outcome::duplicate:
      ++known_;
      break;
    case relay::Outcome::storage_full:
    case relay::Outcome::failed:
      ++failed_;
      break;
    default:
      ++refused_[std::string(nostr::text_of(relay::reason_of(became)))];
  }
  if (--under_way_ == 0) settled_.set();
}

std::string Intake::summary() const {
  std::uint64_t refused = 0;
  for (const auto& [why, count] : refused_) refused += count;
  auto text = fmt::format("{} stored, {} there already, {} refused", stored_, known_, refused);
  if (failed_ > 0) text += fmt::format(", {} not stored by the database", failed_);
  for (const auto& [why, count] : refused_) text += fmt::format("\n{:>10}  {}", count, why);
  return text;
}

}  // namespace todoke::app
