// Stores the events of a file, as the relay stores what its clients send.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/line_source.hpp"
#include "app/progress.hpp"
#include "app/store_scope.hpp"
#include "base/attempt.hpp"
#include "pg/storage.hpp"
#include "relay/import.hpp"

namespace todoke::app {
namespace {

// Checked on another thread while the events before them are committed.
constexpr std::size_t kChunkLines = 512;
constexpr std::chrono::milliseconds kChunkWait(200);
// Of each reason; the summary counts the rest.
constexpr std::uint64_t kToldPerReason = 20;
// When so many events fail in a row, the database has a problem, and not the events.
constexpr std::uint64_t kFailedMax = 100;
constexpr std::int64_t kSkipMax = 1'000'000'000'000;
// While the database has no room: how often the import looks whether that is over.
constexpr std::chrono::milliseconds kLookForRoomEvery(250);

struct ImportRequest {
  std::string path;
  bool checks_signatures = true;
  std::uint64_t skip = 0;
};

// What became of the lines.
class ImportTally {
 public:
  void refuse(std::uint64_t line, std::string_view why) {
    auto& count = refused_[std::string(why)];
    ++count;
    if (count <= kToldPerReason) note(fmt::format("line {}: {}", line, why));
    if (count == kToldPerReason) note(fmt::format("further lines with `{}` are only counted", why));
  }

  void begin(std::uint64_t line) { open_.insert(line); }

  void count(std::uint64_t line, relay::Outcome outcome) {
    open_.erase(line);
    switch (outcome) {
      case relay::Outcome::stored:
        ++stored_;
        return;
      case relay::Outcome::duplicate:
        ++known_;
        return;
      case relay::Outcome::newer_version:
        ++older_;
        return;
      case relay::Outcome::deleted:
      case relay::Outcome::vanished:
        ++deleted_;
        return;
      case relay::Outcome::author_blocked:
        refuse(line, nostr::text_of(nostr::Reason::author_blocked));
        return;
      case relay::Outcome::event_blocked:
        refuse(line, nostr::text_of(nostr::Reason::event_blocked));
        return;
      case relay::Outcome::topic_blocked:
        refuse(line, nostr::text_of(nostr::Reason::topic_blocked));
        return;
      case relay::Outcome::full:
        refuse(line, nostr::text_of(nostr::Reason::capacity));
        return;
      case relay::Outcome::storage_full:
        ++without_room_;
        first_failed_ = std::min(first_failed_, line);
        refuse(line, "error: not stored, the database's disk was full");
        return;
      case relay::Outcome::failed:
        ++failed_;
        first_failed_ = std::min(first_failed_, line);
        refuse(line, "error: not stored, the database did not take it");
        return;
    }
  }

  void read_up_to(std::uint64_t line) { read_ = line; }
  // No line up to this one waits or failed.
  [[nodiscard]] std::uint64_t settled_up_to() const {
    return std::min(open_.empty() ? read_ : *open_.begin() - 1, first_failed_ - 1);
  }
  [[nodiscard]] std::uint64_t stored() const { return stored_; }
  // Not counting those for which there was no room.
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  [[nodiscard]] bool is_whole() const { return failed_ == 0 && without_room_ == 0; }

  [[nodiscard]] std::string summary(std::chrono::duration<double> passed) const {
    std::uint64_t refused = 0;
    for (const auto& [why, count] : refused_) refused += count;
    auto text = fmt::format(
        "{} events stored, {} there already, {} older than a stored version, {} deleted by their author, {} "
        "lines "
        "refused; {}",
        stored_, known_, older_, deleted_, refused, rate_text(stored_, passed, std::nullopt));
    for (const auto& [why, count] : refused_) text += fmt::format("\n{:>10}  {}", count, why);
    return text;
  }

 private:
  std::set<std::uint64_t> open_;  // bounded by what may wait in the writer
  std::map<std::string, std::uint64_t> refused_;
  std::uint64_t read_ = 0;
  std::uint64_t stored_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t older_ = 0;
  std::uint64_t deleted_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t without_room_ = 0;
  std::uint64_t first_failed_ = std::numeric_limits<std::uint64_t>::max();  // a line
};

struct CheckedLine {
  std::uint64_t number = 0;
  tl::expected<relay::Incoming, std::string_view> event;
};

class ImportRun {
 public:
  ImportRun(const ImportRequest& request, relay::Import& importing, const pg::Storage& storage)
      : request_(request), import_(importing), storage_(storage), source_(request.path) {}

  Task<void> run() {
    const auto read = co_await attempt(read_lines());
    const auto committed = co_await attempt(import_.finish());
    progress_.end();
    note(tally_.summary(progress_.passed()));
    if (!read || !committed) {
      note(fmt::format("stopped early: repeat the import, or go on with --skip {}", tally_.settled_up_to()));
      std::rethrow_exception(read ? committed.error() : read.error());
    }
    if (tally_.is_whole()) co_return;
    throw UserError(fmt::format("some events were not stored: repeat the import, or go on with --skip {}",
                                tally_.settled_up_to()));
  }

 private:
  Task<void> read_lines() {
    while (!source_.ended()) {
      std::vector<CheckedLine> chunk;
      co_await run_blocking([&] { chunk = check_chunk(); });
      for (auto& line : chunk) co_await take(std::move(line));
      if (tally_.failed() > kFailedMax) throw UserError("the database takes no events");
      if (progress_.is_due()) show_progress();
    }
  }

  std::vector<CheckedLine> check_chunk() {
    std::vector<CheckedLine> chunk;
    for (const auto& line : source_.read(kChunkLines, kChunkWait)) {
      if (line.number <= request_.skip) continue;
      if (line.too_long) {
        chunk.push_back({line.number, tl::unexpected(nostr::text_of(nostr::Reason::message_too_long))});
      } else {
        chunk.push_back({line.number, import_.check(line.text)});
      }
    }
    return chunk;
  }

  Task<void> take(CheckedLine line) {
    tally_.read_up_to(line.number);
    if (!line.event) {
      tally_.refuse(line.number, line.event.error());
      co_return;
    }
    co_await wait_for_room();
    tally_.begin(line.number);
    line.event->on_outcome = [this, number = line.number](relay::Outcome outcome) {
      tally_.count(number, outcome);
    };
    co_await import_.offer(std::move(*line.event));
  }

  // For as long as it takes, as the node itself waits.
  Task<void> wait_for_room() {
    if (!storage_.is_full()) co_return;
    progress_.end();
    note("the database's disk is full: waiting for room");
    while (storage_.is_full()) co_await sleep_for(kLookForRoomEvery);
    note("the database's disk has room again");
  }

  void show_progress() {
    const auto total = source_.bytes_total();
    std::optional<double> part;
    if (total && *total > 0) part = static_cast<double>(source_.bytes_read()) / static_cast<double>(*total);
    const auto settled = tally_.settled_up_to();
    progress_.show(fmt::format("line {}, {} events stored", settled, tally_.stored()),
                   settled - std::min(settled, request_.skip), part);
  }

  const ImportRequest& request_;
  relay::Import& import_;
  const pg::Storage& storage_;
  LineSource source_;
  ImportTally tally_;
  Progress progress_;
};

Task<void> import_events(pg::Connection& connection, const ImportRequest& request, Config base) {
  const StoreOptions options{.source = relay::Source::import, .checks_signatures = request.checks_signatures};
  co_await with_store(connection, std::move(base), options, [&](StoreScope& store) -> Task<void> {
    ImportRun run(request, store.importing, store.storage);
    co_await run.run();
  });
}

int run_import(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError("import: name one file, or - for stdin");
  ImportRequest request;
  request.path = arguments.words[0];
  request.checks_signatures = !arguments.has("no-verify");
  request.skip = static_cast<std::uint64_t>(number_option(arguments, "skip", 0, kSkipMax).value_or(0));
  const auto base = command_config(arguments);
  with_made_database(base,
                     [&](pg::Connection& connection) { return import_events(connection, request, base); });
  return 0;
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .summary = "store the events of a file of JSON lines",
      .synopsis = "FILE|- [--no-verify] [--skip N]",
      .details =
          "Takes a file (plain, gzip or zstd, whatever its name) or stdin with an event in each line, as "
          "`todoke export` and "
          "strfry write it, through the rules of the relay: its topics, duplicates, versions and deletions "
          "hold, and every "
          "stored event gets its rows in the log, so subscribers and consumers see it. Old events are taken "
          "whatever "
          "relay.created_at_past_max says; rate limits don't apply. Works beside a running node, by its "
          "configuration, and "
          "without one.\n\n"
          "A line that is refused is reported with its number, skipped and counted, and the exit code stays "
          "0. It is 1 when "
          "the file can't be read to its end or the database did not take an event. Repeating an import is "
          "always safe: what "
          "is there counts as a duplicate. --skip passes over the lines that an earlier one has done; its "
          "progress names them.",
      .options = {{"no-verify", "", "take the signatures for right; ids are checked all the same"},
                  {"skip", "N", "begin after line N"}},
      .words_max = 1,
      .run = run_import,
  };
}

}  // namespace todoke::app
