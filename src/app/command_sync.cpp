// Brings this node and another relay to the same events.
#include <string>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/progress.hpp"
#include "app/reconciling.hpp"
#include "base/attempt.hpp"
#include "nostr/texts.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

struct SyncRequest {
  std::string url;
  nostr::Filter filter;
  bool down = true;
  bool up = false;
  std::optional<nostr::SecretKey> key;
};

SyncRequest read_sync_request(const Arguments& arguments) {
  SyncRequest request;
  const auto url = arguments.option("with");
  if (!url) throw UsageError("sync: name the other relay: --with wss://…");
  request.url = *url;
  const auto text = arguments.option("filter").value_or("{}");
  auto filter = nostr::parse_filter(text, {});
  if (!filter) throw UsageError(fmt::format("--filter {}: {}", text, nostr::text_of(filter.error())));
  if (filter->search || filter->seq_after)
    throw UsageError(fmt::format("--filter {}: no search or seq_after", text));
  request.filter = std::move(*filter);
  const auto direction = arguments.option("dir").value_or("down");
  if (direction != "down" && direction != "up" && direction != "both")
    throw UsageError(fmt::format("--dir {}: down, up or both", direction));
  request.down = direction != "up";
  request.up = direction != "down";
  if (const auto path = arguments.option("auth-key-file")) request.key = read_key_file(*path);
  return request;
}

Task<void> sync_store(StoreScope& store, const SyncRequest& request) {
  if (store.config.get(relay::keys::kTopicPolicy) == "topics" && request.filter.tag('t') == nullptr)
    throw UserError(
        "relay.topic_policy is topics: the filter needs #t, such as {\"#t\":[\"kukuri:global\"]}");
  const Executor executor = co_await asio::this_coro::executor;
  RelayAddress address{request.url, request.url};
  const auto client = co_await RelayClient::connect(std::move(address), request.key);
  RelayPeer peer(*client);
  Intake intake(store, executor);
  Progress progress;
  ReconcilingOptions options{.down = request.down, .up = request.up};
  options.show = [&](const std::string& what, std::uint64_t count) {
    if (progress.is_due()) progress.show(what, count, std::nullopt);
  };
  Reconciling reconciling(peer, store, intake, std::move(options));
  const auto done = co_await attempt(reconciling.run(request.filter));
  const auto settled = co_await attempt(intake.wait_for_outcomes());
  progress.end();
  note(fmt::format("{} events here were compared in {} rounds", reconciling.compared(), peer.rounds()));
  if (request.down) {
    note(fmt::format("down: {} were lacking here, {} came: {}", reconciling.lacked(), reconciling.came(),
                     intake.summary()));
  }
  if (request.up) {
    const auto& sent = reconciling.sent();
    note(fmt::format("up: {} taken by the peer, {} there already, {} refused; {} not for everybody stay here",
                     sent.taken, sent.known, sent.refused, reconciling.kept()));
  }
  if (!done || !settled) {
    note("stopped early: repeat it, what was done is not done again");
    std::rethrow_exception(done ? settled.error() : done.error());
  }
  co_await client->close();
  if (intake.failed() > 0) throw UserError("some events were not stored: repeat it");
}

int run_sync(const Arguments& arguments) {
  const auto request = read_sync_request(arguments);
  const auto base = command_config(arguments);
  with_made_database(base, [&](pg::Connection& connection) {
    return with_store(connection, base, {}, [&](StoreScope& store) { return sync_store(store, request); });
  });
  return 0;
}

}  // namespace

Command sync_command() {
  return {
      .name = "sync",
      .summary = "bring this node and another relay to the same events (NIP-77)",
      .synopsis = "--with URL [--filter FILTER] [--dir down|up|both] [--auth-key-file FILE]",
      .details =
          "Compares the events that pass FILTER here and there by set reconciliation, so that only what is "
          "missing "
          "travels: down (the default) brings what is lacking here, up sends what the other relay lacks, "
          "both does "
          "both. With relay.topic_policy = topics the filter needs #t.\n\n"
          "What comes is checked and stored as `todoke import` does it, with the source `import`; what goes "
          "is what an "
          "anonymous reader may see. Works beside a running node and without one. Safe to interrupt and to "
          "repeat. More "
          "events than the relay compares at once are split by time. The exit code is 1 when the relay does "
          "not know "
          "NIP-77, refuses the question, or ends the connection.",
      .options = {{"with", "URL", "the other relay, ws:// or wss://"},
                  {"filter", "FILTER", "a filter of NIP-01 as JSON; {} by default"},
                  {"dir", "down|up|both", "what travels where"},
                  {"auth-key-file", "FILE", "log in (NIP-42) with the secret key in FILE, 64 hex digits"}},
      .run = run_sync,
  };
}

}  // namespace todoke::app
