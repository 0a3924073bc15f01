#include "relay/event_door.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "nostr/event_parse.hpp"
#include "relay/admission.hpp"
#include "relay/policy.hpp"
#include "relay/writer.hpp"

namespace todoke::relay {
namespace {

using nostr::Reason;
using outbox::From;
using outbox::Published;

constexpr std::string_view kOnlyStored = "invalid: ephemeral events go over a relay's connection";

// Refusals for the moment: the same event may be taken later.
bool is_for_now(Reason reason) {
  return reason == Reason::capacity || reason == Reason::storage_full || reason == Reason::not_stored ||
         reason == Reason::policy_failed;
}

// What the writer, or the operator's program, says of one event.
template <class Said>
struct Verdict {
  std::mutex mutex;
  Signal* told = nullptr;  // null: nobody waits any more
  Said said{};
};

// A caller that waits for a verdict, on a loop that may end before the verdict comes.
template <class Said>
class Waiting {
 public:
  explicit Waiting(Executor executor) : told_(std::move(executor)) { verdict_->told = &told_; }
  ~Waiting() {
    const std::lock_guard lock(verdict_->mutex);
    verdict_->told = nullptr;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Called from any thread.
  [[nodiscard]] std::function<void(Said)> listener() const {
    return [verdict = verdict_](Said said) {
      const std::lock_guard lock(verdict->mutex);
      verdict->said = std::move(said);
      if (verdict->told != nullptr) verdict->told->set_from_anywhere();
    };
  }

  // Nothing: it was not told in time.
  Task<std::optional<Said>> wait_until(Deadline deadline) {
    const bool is_told = co_await told_.wait_for(deadline.left());
    if (!is_told) co_return std::nullopt;
    const std::lock_guard lock(verdict_->mutex);
    co_return verdict_->said;
  }

 private:
  Signal told_;
  const std::shared_ptr<Verdict<Said>> verdict_ = std::make_shared<Verdict<Said>>();
};

}  // namespace

EventDoor::EventDoor(SessionServices& services, Reader& reader) : services_(services), reader_(reader) {}

Published EventDoor::refuse(Reason reason) {
  services_.metrics.rejected.with({std::string(label_of(reason))}).add();
  return {is_for_now(reason) ? Published::Kind::not_now : Published::Kind::refused,
          std::string(text_of(reason))};
}

Published EventDoor::tell(const nostr::EventId& id, Outcome outcome) {
  if (outcome == Outcome::stored) return {Published::Kind::stored, {}};
  if (outcome != Outcome::duplicate) return refuse(reason_of(outcome));
  services_.metrics.dedupe_hits.add();
  services_.duplicates.hit(id, services_.clock.now());
  return {Published::Kind::duplicate, std::string(text_of(Reason::already_stored))};
}

Task<Published> EventDoor::publish(std::string event_json, From from, std::optional<nostr::Pubkey> proven,
                                   Deadline deadline) {
  const auto source = from == From::node ? Source::node : Source::api;
  services_.metrics.received.with({std::string(to_string(source))}).add();
  const auto settings = services_.settings.load();
  auto parsed = nostr::parse_event(event_json, settings->limits.event);
  if (!parsed) co_return refuse(parsed.error().reason);
  const auto id = parsed->id();
  const nostr::Sender sender{proven ? std::span(&*proven, 1) : std::span<const nostr::Pubkey>(),
                             from == From::node};
  const auto topics = services_.topics.topics();
  const auto blocks = services_.blocks.blocks();
  auto admitted =
      admit(std::make_shared<const nostr::Event>(std::move(*parsed)), source, sender, settings->rules,
            *blocks, *services_.keys.keys(), *topics, services_.known, seconds_of(services_.clock.now()));
  if (!admitted) {
    if (admitted.error() == Reason::already_stored) co_return tell(id, Outcome::duplicate);
    co_return refuse(admitted.error());
  }
  if (admitted->ephemeral) co_return Published{Published::Kind::refused, std::string(kOnlyStored)};
  if (const auto why = held_back(admitted->incoming, *topics, services_.pressure)) {
    if (*why != Reason::capacity) co_return refuse(*why);
    admitted->incoming.held = true;
  }
  if (from == From::api && services_.policy.is_on()) {
    auto decided = co_await ask_policy(admitted->incoming.event, proven, deadline);
    if (decided) co_return std::move(*decided);
  }
  co_return co_await store(std::move(admitted->incoming), deadline);
}

// Nothing: it may be stored.
Task<std::optional<Published>> EventDoor::ask_policy(EventPtr event, std::optional<nostr::Pubkey> proven,
                                                     Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  Waiting<PolicyVerdict> waiting(executor);
  const PolicySource source{"API", std::string(), proven};
  const std::function<void()> goes_on = [] {};  // the caller waits for its verdict in any case
  services_.policy.ask(event, source, waiting.listener(), goes_on);
  const auto told = co_await waiting.wait_until(deadline);
  const auto verdict = told ? *told : PolicyVerdict();
  switch (verdict.action) {
    case PolicyAction::accept:
      co_return std::nullopt;
    case PolicyAction::shadow_reject:
      co_return Published{Published::Kind::stored, {}};
    case PolicyAction::reject: {
      auto refused = refuse(Reason::policy_refused);
      if (!verdict.text.empty()) refused.message = verdict.text;
      co_return refused;
    }
    case PolicyAction::failed:
      if (services_.policy.accepts_on_failure()) co_return std::nullopt;
      co_return refuse(Reason::policy_failed);
  }
  throw std::logic_error("a verdict without an action");
}

Task<Published> EventDoor::store(Incoming incoming, Deadline deadline) {
  if (!services_.writer.has_started()) co_return refuse(Reason::not_stored);
  const auto id = incoming.event->id();
  const Executor executor = co_await asio::this_coro::executor;
  Waiting<Outcome> waiting(executor);
  incoming.on_outcome = waiting.listener();
  // The caller waits for its outcome in any case.
  services_.writer.offer(std::move(incoming), [] {});
  const auto outcome = co_await waiting.wait_until(deadline);
  co_return outcome ? tell(id, *outcome) : refuse(Reason::not_stored);
}

Task<std::vector<std::optional<std::string>>> EventDoor::read(std::vector<std::string> ids,
                                                              Deadline deadline) {
  const auto found = co_await reader_.public_events(ids, deadline);
  HashMap<std::string, std::string> by_id;
  for (const auto& live : found) by_id.emplace(live->event->id().hex(), live->event->json());
  std::vector<std::optional<std::string>> texts;
  texts.reserve(ids.size());
  for (const auto& id : ids) {
    const auto text = by_id.find(id);
    texts.push_back(text == by_id.end() ? std::nullopt : std::optional(text->second));
  }
  co_return texts;
}

}  // namespace todoke::relay
