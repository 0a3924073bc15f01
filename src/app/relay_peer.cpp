#include "app/relay_peer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/bytes.hpp"
#include "net/websocket.hpp"
#include "nostr/filter_writer.hpp"

namespace todoke::app {
namespace {

using nostr::RelayMessage;
using Verb = nostr::RelayMessage::Verb;

constexpr std::string_view kPeerSub = "todoke";
// A relay that reads a million ids before it answers takes a minute.
constexpr std::chrono::seconds kFirstAnswerLimit(120);
constexpr std::chrono::seconds kNextAnswerLimit(60);
// A relay that does not know a verb says so in a NOTICE; that may be about something else.
constexpr std::chrono::seconds kAfterNotice(2);
// What relays take as a message holds twice as much hex.
constexpr std::size_t kCompareBytesMax = 60'000;
constexpr std::size_t kNeedMax = 2'000'000;
// A relay that sends more for one REQ does not keep to its limit.
constexpr std::size_t kEventsOfAnswerMax = 20'000;
constexpr std::size_t kBytesOfAnswerMax = 256 * 1024 * 1024;
// Pauses of 1, 2, 4, … 60 s: five minutes.
constexpr int kConnectTriesMax = 10;
constexpr std::chrono::seconds kReconnectPauseMost(60);

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes(hex.size() / 2, '\0');
  if (!from_hex(hex, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}))
    throw UserError("the peer sent a NEG-MSG that is not hex");
  return bytes;
}

bool starts(const std::string& text, std::string_view prefix) {
  return text.starts_with(prefix);
}

std::optional<std::int64_t> seq_in(std::string_view hints) {
  constexpr std::string_view kMark = "\"seq:";
  const auto at = hints.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t seq = -1;
  const auto digits = hints.substr(at + kMark.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), seq);
  return seq < 0 ? std::nullopt : std::optional(seq);
}

std::vector<nostr::EventId> each_once(std::vector<nostr::EventId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Task<RelayMessage> RelayPeer::next_message(std::chrono::milliseconds limit) {
  auto message = co_await relay_.receive(limit);
  if (!message) throw UserError(fmt::format("the peer has closed the connection: {}", relay_.end()));
  co_return std::move(*message);
}

Task<void> RelayPeer::before_asking_again(std::string why, int tries) {
  if (starts(why, "auth-required:") && tries == 1) {
    const bool logged_in = co_await relay_.log_in();
    if (logged_in) co_return;
  }
  if (!starts(why, "rate-limited:") || tries >= kConnectTriesMax)
    throw UserError(fmt::format("the peer refuses: {}", why));
  co_await pause_(std::min(std::chrono::seconds(1 << std::min(tries - 1, 6)), kReconnectPauseMost));
}

// To the first NEG-OPEN: a peer that knows nothing of it says something else, or nothing.
Task<RelayMessage> RelayPeer::first_answer() {
  std::string notice;
  for (;;) {
    const auto limit = notice.empty() ? kFirstAnswerLimit : kAfterNotice;
    auto message = co_await attempt(next_message(limit));
    if (!message) {
      if (!is_a<net::NetError>(message.error())) std::rethrow_exception(message.error());
      throw NoNegentropy(notice.empty() ? "the peer does not answer NEG-OPEN: it does not know NIP-77"
                                        : fmt::format("the peer does not know NIP-77: it says '{}'", notice));
    }
    if (message->verb == Verb::notice) notice = message->text;
    if (message->subject != kPeerSub) continue;
    if (message->verb == Verb::closed)
      throw NoNegentropy(fmt::format("the peer does not know NIP-77: it says '{}'", message->text));
    if (message->verb == Verb::neg_msg || message->verb == Verb::neg_err) co_return std::move(*message);
  }
}

Task<std::optional<Difference>> RelayPeer::compare(const nostr::Filter& filter, const nostr::NegSet& set,
                                                   std::function<void(const nostr::NegClient&)> on_round) {
  const NoticesKept kept(relay_);
  for (int tries = 1;; ++tries) {
    nostr::NegClient client(set, {.message_bytes_max = kCompareBytesMax, .need_max = kNeedMax});
    const auto open = fmt::format(R"(["NEG-OPEN","{}",{},"{}"])", kPeerSub, nostr::filter_json(filter),
                                  to_hex(as_bytes(client.open())));
    co_await relay_.send(open);
    std::string refusal;
    for (bool goes_on = true; goes_on;) {
      RelayMessage message;
      if (knows_negentropy_) {
        message = co_await next_message(kFirstAnswerLimit);
      } else {
        message = co_await first_answer();
      }
      if (message.subject != kPeerSub) continue;
      if (message.verb == Verb::neg_err) {
        knows_negentropy_ = true;
        refusal = std::move(message.text);
        break;
      }
      if (message.verb != Verb::neg_msg) continue;
      knows_negentropy_ = true;
      ++rounds_;
      const auto next = client.take(bytes_of_hex(message.text));
      if (!next)
        throw UserError(fmt::format("the peer's answer can't be understood: {}", text_of(next.error())));
      on_round(client);
      goes_on = next->has_value();
      if (!goes_on) break;
      const auto text = fmt::format(R"(["NEG-MSG","{}","{}"])", kPeerSub, to_hex(as_bytes(**next)));
      co_await relay_.send(text);
    }
    if (refusal.empty()) {
      co_await relay_.send(fmt::format(R"(["NEG-CLOSE","{}"])", kPeerSub));
      co_return Difference{client.have(), each_once(client.need())};
    }
    if (starts(refusal, "blocked:")) co_return std::nullopt;
    co_await before_asking_again(std::move(refusal), tries);
  }
}

Task<StoredEvents> RelayPeer::stored(const nostr::Filter& filter) {
  const auto question = fmt::format(R"(["REQ","{}",{}])", kPeerSub, nostr::filter_json(filter));
  for (int tries = 1;; ++tries) {
    co_await relay_.send(question);
    StoredEvents found;
    std::size_t bytes = 0;
    std::string refusal;
    for (;;) {
      auto message = co_await next_message(kNextAnswerLimit);
      if (message.subject != kPeerSub) continue;
      if (message.verb == Verb::event) {
        bytes += message.json.size();
        if (found.events.size() >= kEventsOfAnswerMax || bytes > kBytesOfAnswerMax)
          throw UserError("the peer sends more events than it was asked for");
        found.events.push_back(std::move(message.json));
      } else if (message.verb == Verb::eose) {
        found.more = message.json.find("\"more\"") != std::string::npos;
        found.seq = seq_in(message.json);
        break;
      } else if (message.verb == Verb::closed) {
        refusal = std::move(message.text);
        break;
      }
    }
    if (refusal.empty()) {
      co_await relay_.send(fmt::format(R"(["CLOSE","{}"])", kPeerSub));
      co_return found;
    }
    co_await before_asking_again(std::move(refusal), tries);
  }
}

}  // namespace todoke::app
