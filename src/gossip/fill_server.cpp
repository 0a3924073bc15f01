#include "gossip/fill_server.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "gossip/policy.hpp"

namespace todoke::gossip {
namespace {

using nostr::Reason;
using outbox::FillView;

// As NIP-77 has it on the WebSocket (relay/hub_options.hpp): goes as twice as much hex.
constexpr std::size_t kSetAnswerBytesMax = 100'000;

net::Rate rate_of_questions() {
  return {FillServer::kQuestionsPerSecond, FillServer::kQuestionsPerSecond};
}

const std::string* asked_topic(const FillQuestion& question) {
  if (const auto* open = std::get_if<OpenQuestion>(&question)) return &open->span.topic;
  if (const auto* events = std::get_if<EventsQuestion>(&question)) return &events->topic;
  return nullptr;
}

bool is_for(const outbox::TakenEvent& event, const std::string& topic) {
  const auto topics = destinations(event);
  return std::find(topics.begin(), topics.end(), topic) != topics.end();
}

std::optional<std::string> answer_of(const nostr::NegSet& set, const std::string& message) {
  const auto answer = nostr::neg_answer(set, message, kSetAnswerBytesMax);
  return answer ? set_answer(*answer) : set_refusal(Reason::neg_bad_message);
}

}  // namespace

FillServer::FillServer(const Clock& clock, bool rates, metrics::Registry& registry)
    : clock_(clock), questions_("gossip_question", rate_of_questions(), rates, clock, registry, 4'096) {}

std::optional<Reason> FillServer::refusal(const NodeId& from, const FillQuestion& question) {
  const auto& bytes = from.bytes();
  if (!questions_.take({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).allowed)
    return Reason::rate_limited;
  const auto* topic = asked_topic(question);
  if (topic != nullptr && !topics_.contains(*topic)) return Reason::topic_not_enabled;
  return std::nullopt;
}

Task<std::optional<std::string>> FillServer::answer(std::shared_ptr<outbox::FillSource> store, NodeId from,
                                                    FillQuestion question) {
  const auto why = refusal(from, question);
  if (auto* asked = std::get_if<EventsQuestion>(&question)) {
    if (why) co_return events_refusal(*why);
    co_return co_await events(*store, std::move(*asked));
  }
  if (why) co_return set_refusal(*why);
  if (const auto* asked = std::get_if<NextQuestion>(&question)) co_return next(from, *asked);
  if (auto* asked = std::get_if<OpenQuestion>(&question))
    co_return co_await open(*store, from, std::move(*asked));
  co_return std::nullopt;
}

Task<std::optional<std::string>> FillServer::open(outbox::FillSource& store, NodeId from,
                                                  OpenQuestion question) {
  drop_idle();
  sets_.erase(from);
  if (reads_ >= kReadsMax || sets_.size() >= kSetsMax || events_in_all() >= kEventsInAllMax)
    co_return set_refusal(Reason::rate_limited);
  ++reads_;
  const auto read = co_await attempt(store.ids(std::move(question.span), FillView::everybody, kSetEventsMax));
  --reads_;
  if (!read) {
    log::warning("gossip", "a set for another node was not read", {{"error", describe(read.error())}});
    co_return set_refusal(Reason::rate_limited);
  }
  const auto& set = *read;
  if (!set) co_return set_refusal(Reason::neg_too_many_events);
  sets_.insert_or_assign(from, Set{set, clock_.steady()});
  co_return answer_of(*set, question.message);
}

std::optional<std::string> FillServer::next(NodeId from, const NextQuestion& question) {
  const auto found = sets_.find(from);
  if (found == sets_.end()) return set_refusal(Reason::neg_not_open);
  found->second.used_at = clock_.steady();
  return answer_of(*found->second.events, question.message);
}

Task<std::optional<std::string>> FillServer::events(outbox::FillSource& store, EventsQuestion question) {
  const auto read = co_await attempt(store.events(question.topic, std::move(question.ids)));
  if (!read) {
    log::warning("gossip", "events for another node were not read", {{"error", describe(read.error())}});
    co_return events_refusal(Reason::rate_limited);
  }
  std::vector<std::string_view> given;
  for (const auto& event : read->events) {
    if (is_for(event, question.topic)) given.push_back(event.event->json());
  }
  co_return events_answer(given, read->more);
}

std::size_t FillServer::events_in_all() const {
  std::size_t events = 0;
  for (const auto& [node, set] : sets_) events += set.events->size();
  return events;
}

void FillServer::drop_idle() {
  const auto since = clock_.steady() - kSetIdleMax;
  std::erase_if(sets_, [&](const auto& entry) { return entry.second.used_at < since; });
}

}  // namespace todoke::gossip
