// Sends events to a relay, ours or another's.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/event_draft.hpp"
#include "app/line_source.hpp"
#include "app/relay_client.hpp"
#include "app/runtime.hpp"
#include "nostr/event_parse.hpp"
#include "relay/event_rows.hpp"

namespace todoke::app {
namespace {

using nostr::RelayMessage;

// Relays answer in the time of a commit; these fill what a connection can hold meanwhile.
constexpr std::size_t kInFlightMax = 64;
// For the answer to an event, which comes after its commit.
constexpr std::chrono::seconds kOkLimit(60);
// How long a pipe without events keeps answers from being read.
constexpr std::chrono::milliseconds kReadWait(50);
constexpr std::chrono::seconds kPauseFirst(1);
constexpr std::chrono::seconds kPauseMost(16);
// Pauses in a row after which nothing was taken: two minutes.
constexpr int kPausesMax = 10;

struct Outgoing {
  std::uint64_t line = 0;  // 0: not from a file
  std::string id;
  std::string json;
  int tries = 0;
};

Outgoing outgoing_of(std::uint64_t line, const nostr::Event& event) {
  return {line, event.id().hex(), std::string(event.json())};
}

struct Published {
  std::uint64_t taken = 0;
  std::uint64_t known = 0;  // the relay had it
  std::uint64_t refused = 0;
  std::uint64_t unreadable = 0;
};

class Publishing {
 public:
  explicit Publishing(RelayClient& relay) : relay_(relay) {}

  Task<void> publish(Outgoing event) {
    while (in_flight_.size() + held_.size() >= kInFlightMax) co_await go_on();
    co_await send(std::move(event));
  }

  // Until every event has its answer.
  Task<void> finish() {
    while (!in_flight_.empty() || !held_.empty()) co_await go_on();
  }

  void unreadable(std::uint64_t line, std::string_view why) {
    ++counts_.unreadable;
    note(fmt::format("line {}: {}", line, why));
  }

  [[nodiscard]] const Published& counts() const { return counts_; }

 private:
  // Takes an answer; where only refused events are left, waits and sends them again.
  Task<void> go_on() {
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

  Task<void> take_answer() {
    auto message = co_await relay_.receive(kOkLimit);
    if (!message) {
      throw UserError(
          fmt::format("the relay has closed the connection ({}) with {} events unanswered, the first {}",
                      relay_.end(), in_flight_.size(), named(in_flight_.begin()->second)));
    }
    if (message->verb != RelayMessage::Verb::ok) co_return;
    const auto found = in_flight_.find(message->subject);
    if (found == in_flight_.end()) co_return;
    auto event = std::move(found->second);
    in_flight_.erase(found);
    co_await judge(std::move(event), std::move(*message));
  }

  static std::string named(const Outgoing& event) {
    return event.line == 0 ? event.id : fmt::format("line {} ({})", event.line, event.id);
  }

  Task<void> send(Outgoing event) {
    ++event.tries;
    const auto message = fmt::format(R"(["EVENT",{}])", event.json);
    const auto id = event.id;
    // The same event twice in a row has one answer or two; either way it is there.
    in_flight_.insert_or_assign(id, std::move(event));
    co_await relay_.send(message);
  }

  Task<void> judge(Outgoing event, RelayMessage answer) {
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
    ++counts_.refused;
    note(fmt::format("{}: {}", named(event), answer.text));
  }

  RelayClient& relay_;
  std::map<std::string, Outgoing> in_flight_;  // by id
  std::vector<Outgoing> held_;                 // sent too fast for the relay
  Published counts_;
  std::chrono::seconds pause_ = kPauseFirst;
  int pauses_ = 0;
};

Task<void> publish_lines(Publishing& publishing, LineSource& source) {
  while (!source.ended()) {
    std::vector<LineSource::Line> lines;
    co_await run_blocking([&] { lines = source.read(kInFlightMax, kReadWait); });
    for (auto& line : lines) {
      static const auto kNoLimits = relay::no_limits();
      if (line.too_long) {
        publishing.unreadable(line.number, nostr::text_of(nostr::Reason::message_too_long));
        continue;
      }
      const auto event = nostr::parse_event(line.text, kNoLimits);
      if (!event) {
        publishing.unreadable(line.number, nostr::text_of(event.error().reason));
        continue;
      }
      auto outgoing = outgoing_of(line.number, *event);
      co_await publishing.publish(std::move(outgoing));
    }
    // A pipe that is silent: the answers to what it gave are told now.
    if (lines.empty()) co_await publishing.finish();
  }
  co_await publishing.finish();
}

Task<void> publish_all(RelayAddress address, std::optional<nostr::SecretKey> key,
                       std::optional<nostr::Event> event, LineSource* source, Published& counts) {
  const auto relay = co_await RelayClient::connect(std::move(address), std::move(key));
  Publishing publishing(*relay);
  if (event) {
    auto outgoing = outgoing_of(0, *event);
    co_await publishing.publish(std::move(outgoing));
    co_await publishing.finish();
  } else {
    co_await publish_lines(publishing, *source);
  }
  counts = publishing.counts();
  co_await relay->close();
}

int run_publish(const Arguments& arguments) {
  std::optional<nostr::Event> event;
  std::optional<LineSource> source;
  if (arguments.has("key-file")) {
    if (!arguments.words.empty())
      throw UsageError("publish: a file of events, or --key-file to sign one, not both");
    const auto draft = draft_from(arguments);
    event = nostr::sign_event(draft, read_key_file(*arguments.option("key-file")));
  } else {
    for (const auto* option : {"kind", "content", "tag", "created-at"}) {
      if (arguments.has(option)) throw UsageError(fmt::format("publish: --{} needs --key-file", option));
    }
    source.emplace(arguments.words.empty() ? "-" : arguments.words[0]);
  }
  std::optional<nostr::SecretKey> auth_key;
  if (const auto path = arguments.option("auth-key-file")) auth_key = read_key_file(*path);
  Published counts;
  Runtime runtime;
  runtime.run(
      publish_all(relay_address(arguments), std::move(auth_key), event, source ? &*source : nullptr, counts));
  const bool all = counts.refused + counts.unreadable == 0;
  if (event) {
    if (all) print(fmt::format("{}\n", event->json()));
  } else {
    note(fmt::format("{} published, {} there already, {} refused, {} unreadable", counts.taken, counts.known,
                     counts.refused, counts.unreadable));
  }
  return all ? 0 : 1;
}

}  // namespace

Command publish_command() {
  return {
      .name = "publish",
      .summary = "send events to a relay: a file of JSON lines, or one that is signed here",
      .synopsis =
          "[--relay URL] [FILE|-] | --key-file FILE [--kind N] [--content TEXT] [--tag TAG]… [--created-at "
          "TIME]",
      .details =
          "FILE (stdin by default; gzip and zstd are unpacked) has a signed event in each line; several are "
          "under way at "
          "once. An event that the relay refuses, or a line that is none, is reported with its number on "
          "stderr, and the "
          "exit code is 1. `rate-limited:` is waited out. The relay is that of the running node unless "
          "--relay names "
          "another one.\n\n"
          "With --key-file it makes one event of --kind (1), --content and the tags, signs it, and prints it "
          "when the "
          "relay has taken it. A TAG is name=value, such as t=kukuri:global, or a JSON array of strings.",
      .options = {{"relay", "URL", "send to this relay"},
                  {"key-file", "FILE", "sign with the secret key in FILE, 64 hex digits"},
                  {"kind", "N", "the event's kind"},
                  {"content", "TEXT", "the event's content"},
                  {"tag", "TAG", "a tag; may be repeated"},
                  {"created-at", "TIME", "the event's time; now by default"},
                  {"auth-key-file", "FILE", "log in (NIP-42) with the secret key in FILE"}},
      .words_max = 1,
      .run = run_publish,
  };
}

}  // namespace todoke::app
