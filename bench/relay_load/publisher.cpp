#include "relay_load/publisher.hpp"

#include <fmt/format.h>

namespace todoke::bench {

bool CaseReceiver::on_message(std::size_t connection, std::string_view message) {
  const auto reply = read_reply(message);
  switch (reply.type) {
    case ReplyType::ok:
      return on_ok(connection, reply);
    case ReplyType::event:
      return on_event(connection, reply);
    case ReplyType::eose:
      return on_eose(connection, reply);
    case ReplyType::closed:
      return on_closed(connection, reply);
    case ReplyType::notice:
      result_.problem(fmt::format("NOTICE: {}", reply.name));
      return false;
    case ReplyType::auth:  // a relay may offer this to everybody; one that insists says so in its answers
      return false;
    default:
      return unexpected(reply);
  }
}

bool CaseReceiver::unexpected(const Reply& reply) {
  constexpr std::size_t kShown = 120;
  result_.problem(fmt::format("not expected: {}", reply.text.substr(0, kShown)));
  return false;
}

bool CaseReceiver::on_ok(std::size_t /*connection*/, const Reply& reply) {
  return unexpected(reply);
}

bool CaseReceiver::on_event(std::size_t /*connection*/, const Reply& reply) {
  return unexpected(reply);
}

bool CaseReceiver::on_eose(std::size_t /*connection*/, const Reply& reply) {
  return unexpected(reply);
}

bool CaseReceiver::on_closed(std::size_t /*connection*/, const Reply& reply) {
  throw CaseFailed(fmt::format("the relay closed the subscription: {}", reply.text));
}

std::optional<std::size_t> Ledger::settle(const Reply& ok) {
  const auto index = events_.index_of(ok.name);
  if (!index) {
    result_.problem("OK for an event that was not sent");
    return std::nullopt;
  }
  if (answers_[*index] != Answer::none) {
    result_.problem("a second OK for the same event");
    return std::nullopt;
  }
  const bool is_new = ok.accepted && !ok.text.starts_with("duplicate:");
  answers_[*index] = is_new ? Answer::accepted : Answer::refused;
  ++(is_new ? accepted_ : refused_);
  if (!is_new) result_.problem(fmt::format("OK {}: {}", ok.accepted, ok.text));
  return index;
}

void Ledger::require_some() const {
  if (accepted_ > 0) return;
  const auto first = result_.problems.begin();
  throw CaseFailed("the relay accepted no event" +
                   (first == result_.problems.end() ? std::string() : " (" + first->first + ")"));
}

SteadyTime Schedule::step(SteadyTime now, Loop& loop, std::size_t connection, const EventSet& events) {
  constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds(1);
  if (since_.empty()) began_ = next_ = now;
  while (since_.size() < events.size() && next_ <= now) {
    loop.queue(connection, events.frame(since_.size()));
    late_.add(now - next_);
    since_.push_back(rate_ == 0 ? now : next_);
    next_ = rate_ == 0 ? Loop::kNever
                       : began_ + static_cast<std::int64_t>(since_.size()) * kSecond /
                                      static_cast<std::int64_t>(rate_);
  }
  return since_.size() < events.size() ? next_ : Loop::kNever;
}

void Schedule::settled() {
  constexpr std::size_t kPauses = 5;  // 1 to 5 ms
  const auto pause = std::chrono::milliseconds(1 + since_.size() * 7 % kPauses);
  if (rate_ == 0) next_ = std::chrono::steady_clock::now() + gap_.value_or(pause);
}

}  // namespace todoke::bench
