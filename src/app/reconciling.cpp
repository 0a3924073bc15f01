#include "app/reconciling.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "nostr/texts.hpp"

namespace todoke::app {
namespace {

// Of a REQ, and of a read here. Relays take hundreds of ids; a message of 7 KiB costs our own one token.
constexpr std::size_t kIdsAtOnce = 100;
constexpr std::chrono::minutes kLocalReadLimit(1);
// Ahead of our clock: what events of the future may be.
constexpr std::int64_t kAheadSeconds = 86'400;

nostr::Filter for_ids(const nostr::Filter& filter, std::span<const nostr::EventId> ids) {
  nostr::Filter wanted;
  wanted.ids.emplace(std::vector<nostr::EventId>(ids.begin(), ids.end()));
  // Relays with topics ask for one in every filter.
  if (const auto* topics = filter.tag('t')) wanted.tags.push_back({'t', *topics});
  wanted.limit = static_cast<std::uint32_t>(ids.size());
  return wanted;
}

template <class Work>
Task<void> in_pieces(std::vector<nostr::EventId> ids, Work work) {
  for (std::size_t first = 0; first < ids.size(); first += kIdsAtOnce) {
    const auto count = std::min(kIdsAtOnce, ids.size() - first);
    co_await work(std::span(ids).subspan(first, count));
  }
}

}  // namespace

Task<void> Reconciling::run(nostr::Filter filter) {
  const auto now = seconds_of(store_.clock.now()).time_since_epoch().count();
  std::vector<nostr::Filter> spans{std::move(filter)};
  while (!spans.empty()) {
    auto span = std::move(spans.back());
    spans.pop_back();
    const bool done = co_await run_span(span);
    if (done) continue;
    const auto since = std::max<std::int64_t>(span.since.value_or(0), 0);
    const auto until = span.until.value_or(now + kAheadSeconds);
    if (span.limit || since >= until) {
      throw UserError(span.limit ? "too many events: leave `limit` out, or make it smaller"
                                 : fmt::format("too many events at {}: they can't be compared", since));
    }
    const auto middle = since + (until - since) / 2;
    auto later = span;
    span.until = middle;
    later.since = middle + 1;
    spans.push_back(std::move(later));
    spans.push_back(std::move(span));
  }
  co_await intake_.wait_for_outcomes();
}

Task<bool> Reconciling::run_span(const nostr::Filter& filter) {
  const Executor executor = co_await asio::this_coro::executor;
  relay::SetRead read(filter, relay::Viewer{.keys = {}, .sees_all = true}, options_.events_max);
  const auto interrupt = std::make_shared<relay::ReadInterrupt>(executor);
  while (!read.ended()) {
    co_await store_.reader.read_piece(read, Deadline::after(kLocalReadLimit), interrupt);
    options_.show("reading our ids", compared_);
  }
  if (read.is_too_large()) co_return false;
  const auto set = read.take();
  auto difference = co_await peer_.compare(filter, set, [&](const nostr::NegClient& client) {
    options_.show(
        fmt::format("comparing, {} here and {} there so far", client.need().size(), client.have().size()),
        compared_);
  });
  if (!difference) co_return false;
  compared_ += set.size();
  lacked_ += difference->need.size();
  if (options_.down) co_await fetch(filter, std::move(difference->need));
  if (options_.up) co_await send(std::move(difference->have));
  co_return true;
}

Task<void> Reconciling::fetch(const nostr::Filter& filter, std::vector<nostr::EventId> ids) {
  co_await in_pieces(std::move(ids), [&](std::span<const nostr::EventId> piece) -> Task<void> {
    if (options_.check) co_await options_.check();
    std::vector<nostr::EventId> missing(piece.begin(), piece.end());
    // A relay may cut an answer short; what it does not give at all has gone meanwhile.
    for (bool goes_on = true; goes_on && !missing.empty();) {
      auto answer = co_await peer_.stored(for_ids(filter, missing));
      goes_on = answer.more && !answer.events.empty();
      for (auto& json : answer.events) {
        const auto event = nostr::parse_event(json, {});
        const auto at = event ? std::find(missing.begin(), missing.end(), event->id()) : missing.end();
        if (at == missing.end()) continue;
        missing.erase(at);
        ++came_;
        co_await intake_.store_event(std::move(json));
      }
    }
    options_.show(fmt::format("{} of {} events came", came_, lacked_), came_);
  });
}

Task<void> Reconciling::send(std::vector<nostr::EventId> ids) {
  const Executor executor = co_await asio::this_coro::executor;
  const auto interrupt = std::make_shared<relay::ReadInterrupt>(executor);
  co_await in_pieces(std::move(ids), [&](std::span<const nostr::EventId> piece) -> Task<void> {
    if (options_.check) co_await options_.check();
    nostr::Filter wanted;
    wanted.ids.emplace(std::vector<nostr::EventId>(piece.begin(), piece.end()));
    wanted.limit = static_cast<std::uint32_t>(piece.size());
    const std::vector<nostr::Filter> filters{std::move(wanted)};
    relay::Viewer anybody;
    const auto found =
        co_await store_.reader.read(filters, std::move(anybody), Deadline::after(kLocalReadLimit), interrupt);
    kept_ += piece.size() - found.events.size();
    for (const auto& live : found.events) {
      auto outgoing = outgoing_of(0, *live->event);
      co_await publishing_.publish(std::move(outgoing));
    }
    options_.show(fmt::format("{} events sent", publishing_.counts().taken), publishing_.counts().taken);
  });
  co_await publishing_.finish();
}

}  // namespace todoke::app
