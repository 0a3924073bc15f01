// What an operator does with orders.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/orders_reconcile.hpp"
#include "base/text.hpp"
#include "orders/admin/admin.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"
#include "orders/worker/config.hpp"

namespace todoke::app {
namespace {

constexpr std::array<std::string_view, 5> kStatuses{"pending", "sending", "failed", "succeeded", "aborted"};

std::string short_duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f}s", seconds);
  if (seconds < 7'200) return fmt::format("{:.0f}m", seconds / 60);
  return fmt::format("{:.0f}h", seconds / 3'600);
}

Task<void> list_orders(pg::Connection& connection, orders::ListFilter filter) {
  const auto most = filter.most;
  const auto lines = co_await orders::list_orders(connection, std::move(filter), answer_deadline());
  print(fmt::format("{:>10}  {:<12}  {:<9}  {:<7}  {:>8}  {:<8}  {:>6}  {:<20}  {}\n", "id", "key (hash)",
                    "status", "adapter", "attempts", "in doubt", "age", "last error", "held by / next try"));
  for (const auto& line : lines) {
    const auto where = !line.locked_by.empty()   ? line.locked_by
                       : line.due_in_seconds > 0 ? "in " + short_duration(line.due_in_seconds)
                                                 : std::string();
    print(fmt::format("{:>10}  {:<12}  {:<9}  {:<7}  {:>8}  {:<8}  {:>6}  {:<20}  {}\n", line.id,
                      line.key_hash.substr(0, 12), line.status, line.adapter, line.attempts,
                      line.in_doubt ? "yes" : "", short_duration(line.age_seconds), line.code, where));
  }
  if (lines.size() == static_cast<std::size_t>(most))
    print(fmt::format("(the newest {}; --limit shows more)\n", most));
}

Task<std::int64_t> id_of(pg::Connection& connection, std::string text) {
  const auto id = co_await orders::find_order(connection, std::move(text), answer_deadline());
  if (!id) throw UserError(id.error().message);
  co_return *id;
}

Task<void> show_order(pg::Connection& connection, std::string which, bool reveal) {
  const auto id = co_await id_of(connection, std::move(which));
  const auto details =
      co_await orders::show_order(connection, id, reveal, operator_name(), answer_deadline());
  for (const auto& [name, value] : details.fields) {
    if (!value.empty()) print(fmt::format("{:<15} {}\n", name, value));
  }
  if (!details.tries.empty()) print("tries\n");
  for (const auto& line : details.tries) print("  " + line + "\n");
  if (!details.audit.empty()) print("audit\n");
  for (const auto& line : details.audit) print("  " + line + "\n");
}

Task<void> print_stats(pg::Connection& connection) {
  const auto stats = co_await orders::order_stats(connection, answer_deadline());
  for (const auto& [status, count] : stats.counts) print(fmt::format("{:<15} {}\n", status, count));
  print(fmt::format("{:<15} {}\n", "in doubt", stats.in_doubt));
  print(fmt::format("{:<15} {}\n", "oldest pending", short_duration(stats.oldest_pending_seconds)));
  for (const auto& line : stats.workers) print(fmt::format("{:<15} {}\n", "worker", line));
  for (const auto& line : stats.breakers) print(fmt::format("{:<15} {}\n", "breaker", line));
  if (stats.workers_alive == 0) {
    print(
        "no worker runs: a node with the role orders and outbox.enabled (OUTBOX_ENABLED=true) sends them\n");
  }
  for (const auto& line : stats.halts) print(fmt::format("{:<15} {}\n", "halted", line));
}

Task<void> requeue_all(pg::Connection& connection, orders::ListFilter filter, orders::Change asked) {
  const auto most = static_cast<std::size_t>(filter.most);
  const auto requeued =
      co_await orders::requeue_orders(connection, std::move(filter), std::move(asked), answer_deadline());
  for (const auto id : requeued.ids) print(fmt::format("order {} requeued\n", id));
  print(fmt::format("{} orders requeued\n", requeued.ids.size()));
  if (requeued.ids.size() == most) print(fmt::format("(at most {} at a time; --limit takes more)\n", most));
  if (requeued.doubtful > 0) {
    print(fmt::format("{} in doubt were left alone: the broker may have them; --in-doubt requeues those\n",
                      requeued.doubtful));
  }
}

using OrderAction = Task<Expected<void>> (*)(pg::Connection&, orders::Change, Deadline);

Task<void> change_order(pg::Connection& connection, std::string which, orders::Change asked,
                        OrderAction action, std::string done) {
  asked.id = co_await id_of(connection, std::move(which));
  const auto id = asked.id;
  const auto changed = co_await action(connection, std::move(asked), answer_deadline());
  if (!changed) throw UserError(changed.error().message);
  print(fmt::format("order {} {}\n", id, done));
}

Task<void> settle_order(pg::Connection& connection, std::string which, orders::Change asked,
                        orders::ExecResult result) {
  asked.id = co_await id_of(connection, std::move(which));
  const auto id = asked.id;
  const auto changed =
      co_await orders::settle_order(connection, std::move(asked), std::move(result), answer_deadline());
  if (!changed) throw UserError(changed.error().message);
  print(fmt::format("order {} settled\n", id));
}

Task<void> halt_orders(pg::Connection& connection, orders::HaltChange asked) {
  const auto what = fmt::format("adapter {}, instrument {}", asked.adapter, asked.instrument);
  const bool refuses = co_await orders::halt_orders(connection, std::move(asked), answer_deadline());
  print(
      fmt::format("halted: {}. No worker begins to send such an order a second from now. New ones are {}.\n",
                  what, refuses ? "refused (503 HALTED)" : "accepted and wait"));
}

Task<void> resume_orders(pg::Connection& connection, orders::HaltChange asked) {
  const auto what = fmt::format("adapter {}, instrument {}", asked.adapter, asked.instrument);
  const bool was_halted = co_await orders::resume_orders(connection, std::move(asked), answer_deadline());
  if (!was_halted) throw UserError(fmt::format("no halt for {}; `todoke orders stats` lists them", what));
  print(fmt::format("resumed: {}\n", what));
}

void check_adapter(std::string_view name) {
  const std::string all = fmt::format("|{}|", orders::keys::kAdapter.spec.choices);
  if (all.find(fmt::format("|{}|", name)) == std::string::npos) {
    throw UsageError(fmt::format("--adapter {}: say one of {}", name, orders::keys::kAdapter.spec.choices));
  }
}

void check_instrument(const std::string& name) {
  if (orders::is_instrument(name)) return;
  throw UsageError(
      fmt::format("--instrument {}: 3 to 20 characters of A-Z, 0-9, dot, underscore and hyphen", name));
}

bool has_filter(const Arguments& arguments) {
  constexpr std::array<std::string_view, 6> kOfFilter{"status",  "in-doubt", "instrument",
                                                      "adapter", "since",    "until"};
  return std::any_of(kOfFilter.begin(), kOfFilter.end(), [&](auto name) { return arguments.has(name); });
}

orders::ListFilter list_filter(const Arguments& arguments) {
  orders::ListFilter filter;
  filter.status = arguments.option("status");
  filter.in_doubt = arguments.has("in-doubt");
  filter.instrument = arguments.option("instrument");
  filter.adapter = arguments.option("adapter");
  filter.since = time_option(arguments, "since");
  filter.until = time_option(arguments, "until");
  if (filter.instrument) check_instrument(*filter.instrument);
  if (filter.adapter) check_adapter(*filter.adapter);
  if (filter.status && std::find(kStatuses.begin(), kStatuses.end(), *filter.status) == kStatuses.end()) {
    throw UsageError(fmt::format("--status {}: say {}", *filter.status, fmt::join(kStatuses, ", ")));
  }
  filter.most = number_option(arguments, "limit", 1, 1'000).value_or(filter.most);
  return filter;
}

orders::ListFilter requeue_filter(const Arguments& arguments) {
  auto filter = list_filter(arguments);
  if (filter.status && *filter.status != "aborted" && *filter.status != "failed") {
    throw UsageError(
        fmt::format("--status {}: only aborted and failed orders can be requeued", *filter.status));
  }
  return filter;
}

orders::Change change_from(const Arguments& arguments, const Config& config) {
  orders::Change asked;
  asked.actor = operator_name();
  asked.reason = arguments.option("reason");
  asked.force = arguments.has("force");
  asked.lease = config.get(orders::keys::kLease);
  return asked;
}

// The outcome as JSON, or @FILE with it.
orders::ExecResult result_from(const Arguments& arguments) {
  auto text = arguments.option("result");
  if (!text)
    throw UsageError(
        "orders settle: say the outcome with --result '{\"status\": \"ok\", …}' or --result @FILE");
  if (text->starts_with("@")) {
    const std::ifstream file(text->substr(1));
    if (!file) throw UserError(fmt::format("--result: {} can't be read", text->substr(1)));
    std::ostringstream content;
    content << file.rdbuf();
    text = content.str();
  }
  auto result = orders::parse_exec_result(*text);
  if (!result) throw UserError("--result: " + result.error().text());
  return std::move(*result);
}

orders::HaltChange halt_from(const Arguments& arguments) {
  orders::HaltChange asked;
  asked.adapter = arguments.option("adapter").value_or("*");
  asked.instrument = arguments.option("instrument").value_or("*");
  if (asked.adapter != "*") check_adapter(asked.adapter);
  if (asked.instrument != "*") check_instrument(asked.instrument);
  asked.refuse_intake = arguments.has("refuse-intake");
  asked.actor = operator_name();
  asked.reason = arguments.option("reason");
  return asked;
}

void change_one(const Config& config, const Arguments& arguments) {
  const auto& verb = arguments.words[0];
  const auto& which = arguments.words[1];
  const auto asked = change_from(arguments, config);
  with_running_database(config, [&](pg::Connection& connection) {
    if (verb == "requeue") return change_order(connection, which, asked, orders::requeue_order, "requeued");
    if (verb == "release")
      return change_order(connection, which, asked, orders::release_order, "released, in doubt");
    return change_order(connection, which, asked, orders::abort_order, "aborted");
  });
}

int run_orders(const Arguments& arguments) {
  constexpr std::array<std::string_view, 5> kOfOne{"show", "requeue", "release", "abort", "settle"};
  constexpr std::array<std::string_view, 5> kOfAll{"list", "stats", "halt", "resume", "reconcile"};
  const auto& words = arguments.words;
  const auto verb = words.empty() ? std::string() : words[0];
  const bool of_one = !verb.empty() && std::find(kOfOne.begin(), kOfOne.end(), verb) != kOfOne.end();
  if (!of_one && std::find(kOfAll.begin(), kOfAll.end(), verb) == kOfAll.end()) {
    throw UsageError(
        "orders: say list, show, requeue, release, abort, settle, stats, halt, resume or reconcile");
  }
  const bool by_filter = verb == "requeue" && words.size() == 1 && has_filter(arguments);
  if (verb == "requeue" && words.size() == 2 && (has_filter(arguments) || arguments.has("limit")))
    throw UsageError("orders requeue: name one order or give a filter, not both");
  if (of_one && !by_filter && words.size() != 2)
    throw UsageError(fmt::format("orders {}: name one order, by its key, its id or the hash of its key{}",
                                 verb, verb == "requeue" ? ", or give a filter" : ""));
  if (!of_one && words.size() != 1) throw UsageError(fmt::format("orders {} takes no order", verb));
  const auto config = command_config(arguments);
  if (verb == "reconcile") {
    if (const auto adapter = arguments.option("adapter")) check_adapter(*adapter);
    return reconcile_orders(config, arguments);
  }
  if (verb == "list") {
    const auto filter = list_filter(arguments);
    with_running_database(config,
                          [&](pg::Connection& connection) { return list_orders(connection, filter); });
  } else if (by_filter) {
    const auto filter = requeue_filter(arguments);
    const auto asked = change_from(arguments, config);
    with_running_database(config,
                          [&](pg::Connection& connection) { return requeue_all(connection, filter, asked); });
  } else if (verb == "stats") {
    with_running_database(config, [](pg::Connection& connection) { return print_stats(connection); });
  } else if (verb == "show") {
    const bool reveal = arguments.has("reveal");
    with_running_database(
        config, [&](pg::Connection& connection) { return show_order(connection, words[1], reveal); });
  } else if (verb == "settle") {
    const auto result = result_from(arguments);
    const auto asked = change_from(arguments, config);
    with_running_database(config, [&](pg::Connection& connection) {
      return settle_order(connection, words[1], asked, result);
    });
  } else if (verb == "halt" || verb == "resume") {
    const auto asked = halt_from(arguments);
    with_running_database(config, [&](pg::Connection& connection) {
      return verb == "halt" ? halt_orders(connection, asked) : resume_orders(connection, asked);
    });
  } else {
    change_one(config, arguments);
  }
  return 0;
}

}  // namespace

Command orders_command() {
  return {
      .name = "orders",
      .summary = "look at orders, send them again, end them, and stop all sending",
      .synopsis =
          "list | show ORDER | requeue ORDER | requeue FILTER | release ORDER | abort ORDER | settle "
          "ORDER --result "
          "JSON | stats | halt | resume | reconcile --adapter NAME --since TIME",
      .details =
          "ORDER is an idempotency key, the id of the outbox row, or the beginning of the key's hash as list "
          "shows it.\n\n"
          "list      the newest orders; keys as hashes (FILTER: --status, --in-doubt, --instrument, "
          "--adapter, "
          "--since, --until; --limit)\n"
          "show      one order with its tries and its audit; --reveal shows key, content and the broker's "
          "message, and is audited\n"
          "requeue   an aborted or waiting order is sent again, with all its attempts; with a FILTER all "
          "those "
          "that list "
          "shows by it, orders in doubt with --in-doubt only\n"
          "release   takes an order from a worker whose lease has lapsed; it is in doubt then\n"
          "abort     ends an order that is not settled; its ledger says ABORTED_BY_OPERATOR\n"
          "settle    records the outcome that you know, as an ExecResult: '{\"status\": \"ok\"}' or "
          "'{\"status\": \"error\", \"reason_code\": \"BROKER_REJECTED\"}', or @FILE\n"
          "stats     how many orders are where, who sends, what is halted, whose breaker is open\n"
          "halt      no worker sends orders (of --adapter, of --instrument) a second from now; "
          "--refuse-intake: new ones "
          "are refused, too\n"
          "resume    takes that halt away\n"
          "reconcile compares outbox, ledger, journal and the broker's book and names each difference; ends "
          "with 0 "
          "when all agree, with 1 when there is a difference or what the broker has of an "
          "order is not known\n\n"
          "release, abort and settle need --force for an order that a worker holds: the worker is fenced "
          "and, "
          "but for "
          "settle, the order marked as in doubt. Every change is audited with your user name and --reason.",
      .options =
          {{"status", "STATUS", "only orders of this status", {"list", "requeue"}},
           {"in-doubt", "", "only orders in doubt", {"list", "requeue"}},
           {"limit", "N", "how many, 50 without it", {"list", "requeue"}},
           {"reveal", "", "show key and content", {"show"}},
           {"result", "JSON", "the outcome, or @FILE", {"settle"}},
           {"force", "", "also an order that a worker holds", {"release", "abort", "settle"}},
           {"reason", "TEXT", "for the audit", {"requeue", "release", "abort", "settle", "halt", "resume"}},
           {"adapter",
            "NAME",
            "only this adapter; list, requeue: that has tried it",
            {"list", "requeue", "halt", "resume", "reconcile"}},
           {"since",
            "TIME",
            "orders accepted since then, such as 2026-01-31T12:00:00Z or 2026-01-31",
            {"list", "requeue", "reconcile"}},
           {"until", "TIME", "orders accepted before then", {"list", "requeue"}},
           {"instrument", "NAME", "only this instrument", {"list", "requeue", "halt", "resume"}},
           {"refuse-intake", "", "refuse new orders, too", {"halt"}}},
      .words_max = 2,
      .run = run_orders,
  };
}

}  // namespace todoke::app
