// Writes the stored events to a file or to stdout.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_output.hpp"
#include "app/effective_config.hpp"
#include "app/progress.hpp"
#include "nostr/filter.hpp"
#include "nostr/texts.hpp"
#include "relay/export.hpp"

namespace todoke::app {
namespace {

constexpr std::int64_t kSeqMax = 9'007'199'254'740'991;  // of the log (migrations/0002_relay.sql)

struct ExportRequest {
  std::vector<nostr::Filter> filters;  // none: every event
  std::int64_t after = 0;
  std::string path;  // empty: stdout
  Packing packing = Packing::none;

  [[nodiscard]] bool wants(const nostr::Event& event) const {
    return filters.empty() || nostr::matches_any(filters, event);
  }
};

nostr::Filter read_export_filter(const std::string& text) {
  auto filter = nostr::parse_filter(text, {});
  if (!filter) throw UsageError(fmt::format("--filter {}: {}", text, nostr::text_of(filter.error())));
  if (filter->limit || filter->search || filter->seq_after)
    throw UsageError(fmt::format("--filter {}: an export knows no limit, search or seq_after", text));
  return std::move(*filter);
}

ExportRequest read_export_request(const Arguments& arguments) {
  if (arguments.has("gzip") && arguments.has("zstd")) throw UsageError("export: --gzip or --zstd, not both");
  ExportRequest request;
  for (const auto& text : arguments.all("filter")) request.filters.push_back(read_export_filter(text));
  request.after = number_option(arguments, "after", 0, kSeqMax).value_or(0);
  request.path = arguments.option("out").value_or("");
  if (arguments.has("gzip")) request.packing = Packing::gzip;
  if (arguments.has("zstd")) request.packing = Packing::zstd;
  return request;
}

Task<void> export_events(pg::Connection& connection, const ExportRequest& request) {
  DataOutput output(request.path, request.packing);
  auto events = co_await relay::Export::begin(connection, {request.after});
  Progress progress;
  std::uint64_t written = 0;
  while (!events.ended()) {
    const auto page = co_await events.next();
    for (const auto& live : page) {
      if (!request.wants(*live->event)) continue;
      output.line(live->event->json());
      ++written;
    }
    if (!progress.is_due()) continue;
    // What a cursor was shown for is with the reader, so that an export can go on there.
    output.flush();
    progress.show(fmt::format("{} events, cursor {}", written, events.cursor().value), events.given(),
                  static_cast<double>(events.given()) / static_cast<double>(events.total()));
  }
  output.finish();
  progress.end();
  note(fmt::format("{} events exported, {}; go on later with --after {}", written,
                   rate_text(written, progress.passed(), std::nullopt), events.cursor().value));
}

int run_export(const Arguments& arguments) {
  const auto request = read_export_request(arguments);
  with_made_database(command_config(arguments),
                     [&](pg::Connection& connection) { return export_events(connection, request); });
  return 0;
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .summary = "write the stored events as JSON lines",
      .synopsis = "[--filter FILTER]… [--after SEQ] [--gzip | --zstd] [--out FILE]",
      .details =
          "Writes every event in effect to stdout or to FILE, one in each line, compact, as strfry does, in "
          "the order in which "
          "they came; also those whose scope is not public. Works beside a running node and without one.\n\n"
          "--filter is a filter of NIP-01 as JSON (without limit); an event that passes one of several is "
          "written. The last "
          "line on stderr names the cursor: --after with it writes what came since then, also after an "
          "export that was "
          "interrupted, whose progress names it too.",
      .options = {{"filter", "FILTER", "only events that pass; may be repeated"},
                  {"after", "SEQ", "only events that came after this place in the log"},
                  {"gzip", "", "pack with gzip"},
                  {"zstd", "", "pack with zstd"},
                  {"out", "FILE", "write to this file instead of stdout"}},
      .run = run_export,
  };
}

}  // namespace todoke::app
