// Asks a relay for events, ours or another's.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/data_output.hpp"
#include "app/relay_client.hpp"
#include "app/runtime.hpp"
#include "base/json_read.hpp"
#include "nostr/event_id.hpp"
#include "nostr/event_parse.hpp"
#include "relay/event_rows.hpp"

namespace todoke::app {
namespace {

using nostr::RelayMessage;

constexpr std::size_t kFiltersMax = 20;
// Between two messages of an answer.
constexpr std::chrono::seconds kAnswerLimit(60);
// A stream is silent for as long as nothing happens; the connection's own pings notice when it is gone.
constexpr std::chrono::hours kStreamLimit(24 * 365);
constexpr std::string_view kSub = "todoke";

struct Query {
  std::vector<std::string> filters;
  bool counts = false;
  bool streams = false;

  [[nodiscard]] std::string message() const {
    return fmt::format(R"(["{}","{}",{}])", counts ? "COUNT" : "REQ", kSub, fmt::join(filters, ","));
  }
};

// A relay decides itself which filters it knows; a text that is no JSON object is a filter nowhere.
std::vector<std::string> read_filters(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto first = word.find_first_not_of(" \t\r\n");
    const bool is_object = first != std::string::npos && word[first] == '{';
    if (!is_object || check_json(word, nostr::kJsonDepthMax) != JsonCheck::good)
      throw UsageError(
          fmt::format("'{}' is no filter: a filter is a JSON object such as {{\"kinds\":[1]}}", word));
  }
  return words.empty() ? std::vector<std::string>{"{}"} : words;
}

class Asking {
 public:
  Asking(Query query, RelayClient& relay, DataOutput& output)
      : query_(std::move(query)), relay_(relay), output_(output) {}

  Task<void> run() {
    co_await relay_.send(query_.message());
    bool goes_on = true;
    while (goes_on) {
      const std::chrono::milliseconds limit = live_ ? std::chrono::milliseconds(kStreamLimit) : kAnswerLimit;
      auto message = co_await relay_.receive(limit);
      if (!message) throw UserError(fmt::format("the relay has closed the connection: {}", relay_.end()));
      if (message->subject == kSub) goes_on = co_await handle(std::move(*message));
    }
    output_.finish();
  }

 private:
  // False: that was all.
  Task<bool> handle(RelayMessage message) {
    switch (message.verb) {
      case RelayMessage::Verb::event:
        show(message.json);
        co_return true;
      case RelayMessage::Verb::count:
        output_.line(message.json);
        co_return false;
      case RelayMessage::Verb::eose:
        live_ = query_.streams;
        output_.flush();
        co_return live_;
      case RelayMessage::Verb::closed:
        co_await ask_again(std::move(message.text));
        co_return true;
      default:
        co_return true;
    }
  }

  // Relays that want a login refuse first and take the same question afterwards.
  Task<void> ask_again(std::string why) {
    bool logged_in = false;
    if (why.starts_with("auth-required:") && !asked_again_) logged_in = co_await relay_.log_in();
    if (!logged_in) {
      output_.flush();
      throw UserError(fmt::format("the relay refuses: {}", why));
    }
    asked_again_ = true;
    co_await relay_.send(query_.message());
  }

  void show(const std::string& json) {
    static const auto kNoLimits = relay::no_limits();
    const auto event = nostr::parse_event(json, kNoLimits);
    if (!event) return note(fmt::format("todoke: not an event: {}", nostr::text_of(event.error().reason)));
    if (!nostr::has_right_id(*event) || !nostr::has_right_signature(*event))
      return note(fmt::format("todoke: left out, its id or signature is wrong: {}", event->id().hex()));
    output_.line(event->json());
    if (live_) output_.flush();
  }

  Query query_;
  RelayClient& relay_;
  DataOutput& output_;
  bool asked_again_ = false;
  bool live_ = false;
};

Task<void> ask_relay(RelayAddress address, Query query, std::optional<nostr::SecretKey> key) {
  const auto relay = co_await RelayClient::connect(std::move(address), std::move(key));
  DataOutput output;
  Asking asking(std::move(query), *relay, output);
  co_await asking.run();
  co_await relay->close();
}

int run_query(const Arguments& arguments) {
  if (arguments.has("count") && arguments.has("stream"))
    throw UsageError("query: --count or --stream, not both");
  Query query{read_filters(arguments.words), arguments.has("count"), arguments.has("stream")};
  std::optional<nostr::SecretKey> key;
  if (const auto path = arguments.option("auth-key-file")) key = read_key_file(*path);
  auto address = relay_address(arguments);
  Runtime runtime;
  runtime.run(ask_relay(std::move(address), std::move(query), std::move(key)));
  return 0;
}

}  // namespace

Command query_command() {
  return {
      .name = "query",
      .summary = "ask a relay for events, and print them as JSON lines",
      .synopsis = "[--relay URL] [FILTER…] [--count | --stream] [--auth-key-file FILE]",
      .details =
          "FILTER is a filter of NIP-01 as JSON, such as '{\"kinds\":[1],\"limit\":10}'; several make one "
          "question. The "
          "relay is that of the running node unless --relay names another one (ws:// or wss://).\n\n"
          "Prints the stored events, a line of JSON each, as `todoke import` and `todoke publish` take them, "
          "and ends. "
          "Events whose id or signature is wrong are left out. With --stream it goes on with what is new, "
          "until it is "
          "interrupted. The exit code is 1 when the relay refuses the question or ends the connection.",
      .options = {{"relay", "URL", "ask this relay"},
                  {"count", "", "ask how many there are (NIP-45), and print the answer"},
                  {"stream", "", "go on with new events"},
                  {"auth-key-file", "FILE", "log in (NIP-42) with the secret key in FILE, 64 hex digits"}},
      .words_max = kFiltersMax,
      .run = run_query,
  };
}

}  // namespace todoke::app
