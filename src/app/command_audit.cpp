// Recounts the log and what was made of it.
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "admin/trail.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "outbox/audit.hpp"

namespace todoke::app {
namespace {

// It reads every audited row.
constexpr std::chrono::minutes kTrailMax(30);

void print_log(const outbox::LogAudit& log) {
  print(fmt::format("log         rows up to seq {}", log.head));
  if (log.dropped_until > 0) print(fmt::format(", those up to {} gone by retention", log.dropped_until));
  print("\n");
  if (log.purged > 0)
    print(fmt::format("purged      {} rows whose event was purged since, as it should be\n", log.purged));
  for (const auto seq : log.upserts_without_event) {
    print(fmt::format("LOST        the event of seq {} is missing\n", seq));
  }
  for (const auto& id : log.events_without_row) {
    print(fmt::format("LOST        the log has no row for event {}\n", id));
  }
  for (const auto& id : log.losses_without_row) {
    print(fmt::format("LOST        the log does not tell that event {} has lost its effect\n", id));
  }
}

void print_consumer(const outbox::ConsumerAudit& consumer) {
  if (!consumer.keeps_record) {
    print(fmt::format("consumer    {}: at seq {}, keeps no record of what it took\n", consumer.name,
                      consumer.last_seq));
    return;
  }
  print(fmt::format("consumer    {}: at seq {}, {} rows recounted{}\n", consumer.name, consumer.last_seq,
                    consumer.rows, consumer.differences.empty() ? ", all as recorded" : ""));
  if (consumer.skipped > 0) {
    print(fmt::format("            {} more rows can't be: a replay or a rebuild has passed over them\n",
                      consumer.skipped));
  }
  for (const auto& range : consumer.differences) {
    print(fmt::format("DIFFERS     {}: seq {} to {}: the log has {} rows, {}\n", consumer.name,
                      range.from_seq + 1, range.to_seq, range.in_log,
                      range.recorded < 0 ? std::string("none was recorded")
                                         : fmt::format("{} were recorded", range.recorded)));
  }
}

Task<void> audit_log(pg::Connection& connection, bool& clean) {
  const bool shows_progress = isatty(STDERR_FILENO) == 1;
  const std::function<void(const std::string&)> progress = [shows_progress](const std::string& text) {
    if (shows_progress) std::fputs(fmt::format("\r{:<60}\r", text).c_str(), stderr);
  };
  const auto found = co_await outbox::audit(connection, progress);
  print_log(found.log);
  for (const auto& consumer : found.consumers) print_consumer(consumer);
  clean = found.is_clean();
  print(clean ? "all is well\n" : "something differs: see above\n");
}

Task<void> audit_trail(pg::Connection& connection, bool& clean) {
  const auto check = co_await admin::check_trail(connection, Deadline::after(kTrailMax));
  for (const auto& link : check.broken)
    print(fmt::format("BROKEN      {} {} (link {}): {}\n", link.source, link.row_key, link.number,
                      link.problem));
  clean = check.broken.empty();
  print(fmt::format("trail       {} links, head {}\n{}", check.links, check.head,
                    clean ? "the audit is whole\n" : "the audit was tampered with: see above\n"));
}

int run_audit(const Arguments& arguments) {
  bool clean = false;
  const bool trail = arguments.has("trail");
  with_running_database(command_config(arguments), [&](pg::Connection& connection) {
    return trail ? audit_trail(connection, clean) : audit_log(connection, clean);
  });
  return clean ? 0 : 1;
}

}  // namespace

Command audit_command() {
  return {
      .name = "audit",
      .summary = "recount the log: against the events, and against what consumers recorded",
      .synopsis = "[--trail]",
      .details =
          "Reads the whole log and says which event, row or range of seqs differs; exit code 1 when "
          "anything does. "
          "It can run beside a node.\n\n"
          "--trail checks the record of what operators did instead: the chain of hashes over every row of "
          "the "
          "audit, of orders' and of the configuration's. It says which row was changed, taken out or put in "
          "by "
          "hand, and prints the last hash: keep it elsewhere, and a chain that was made anew shows too.",
      .options = {{"trail", "", "check the record of what operators did"}},
      .run = run_audit,
  };
}

}  // namespace todoke::app
