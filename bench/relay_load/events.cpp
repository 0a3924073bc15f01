#include "relay_load/events.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "relay_load/wire.hpp"

namespace todoke::bench {
namespace {

constexpr std::int64_t kRareAge = 30 * 24 * 3600;

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

EventSet::EventSet(std::vector<Framed> events) : events_(std::move(events)) {
  by_id_.reserve(events_.size());
  for (std::size_t i = 0; i < events_.size(); ++i) by_id_.emplace(events_[i].id, i);
}

std::optional<std::size_t> EventSet::index_of(std::string_view id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

EventMaker::EventMaker(std::string topic, std::size_t event_bytes)
    : topic_(std::move(topic)), run_(random_hex(4)) {
  for (std::size_t i = 0; i < kAuthors; ++i) authors_.push_back(nostr::SecretKey::generate());
  constexpr std::int64_t kAnyTime = 1'700'000'000;
  const auto bare = nostr::sign_event({kAnyTime, 1, {{"t", topic_}}, ""}, authors_.front()).json().size();
  content_bytes_ = event_bytes > bare ? event_bytes - bare : 0;
}

// Unique words first, then letters that no storage can compress away.
std::string EventMaker::content(std::uint64_t number) const {
  auto text = fmt::format("{} {} ", run_, number);
  std::uint64_t state = number * 0x9e3779b97f4a7c15U + 1;
  while (text.size() < content_bytes_) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    text.push_back("abcdefghijklmnopqrstuvwxyz012345"[state >> 59U]);
  }
  return text;
}

EventSet::Framed EventMaker::make_one(std::uint64_t number, const Draft& draft) const {
  const auto event =
      nostr::sign_event({draft.created_at, draft.kind, {{"t", topic_}}, content(number)}, *draft.author);
  return {text_frame(fmt::format(R"(["EVENT",{}])", event.json())), event.id().hex()};
}

EventSet EventMaker::make(std::size_t count) {
  const auto now = unix_now();
  return make_all(count, [&](std::size_t i) { return Draft{now, 1, &author_of(i)}; });
}

EventSet EventMaker::make_rare(std::size_t count) {
  const auto then = time_of_spread(0) - kRareAge;
  return make_all(count, [&](std::size_t) { return Draft{then, 7, &rare_author_}; });
}

EventSet EventMaker::make_spread(std::size_t count, std::size_t first) {
  return make_all(count, [&](std::size_t i) { return Draft{time_of_spread(first + i), 1, &author_of(i)}; });
}

// All of one run count from the same moment.
std::int64_t EventMaker::time_of_spread(std::size_t place) {
  constexpr std::size_t kPerSecond = 100;
  static const auto began = unix_now();
  return began - static_cast<std::int64_t>(place / kPerSecond);
}

template <class DraftOf>
EventSet EventMaker::make_all(std::size_t count, const DraftOf& draft_of) {
  std::vector<EventSet::Framed> events(count);
  const auto first = next_;
  next_ += count;
  const std::size_t parts = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      for (std::size_t i = part; i < count; i += parts) events[i] = make_one(first + i, draft_of(i));
    });
  }
  for (auto& thread : threads) thread.join();
  return EventSet(std::move(events));
}

}  // namespace todoke::bench
