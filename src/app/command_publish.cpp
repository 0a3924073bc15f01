// Sends events to a relay, ours or another's.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/event_draft.hpp"
#include "app/line_source.hpp"
#include "app/publishing.hpp"
#include "app/relay_client.hpp"
#include "app/runtime.hpp"
#include "nostr/event_parse.hpp"
#include "relay/event_rows.hpp"

namespace todoke::app {
namespace {

// How long a pipe without events keeps answers from being read.
constexpr std::chrono::milliseconds kReadWait(50);

Task<void> publish_lines(Publishing& publishing, LineSource& source) {
  while (!source.ended()) {
    std::vector<LineSource::Line> lines;
    co_await run_blocking([&] { lines = source.read(Publishing::kInFlightMax, kReadWait); });
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
