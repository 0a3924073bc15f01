// Manages what the operator keeps out of the relay. Running relays see changes at once.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/progress.hpp"
#include "app/topic_ids.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "nostr/topics.hpp"
#include "relay/blocks.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

using relay::BlockKind;

constexpr std::int64_t kBlocksListedAtOnce = 1'000;
constexpr std::chrono::milliseconds kErasureLookEvery(500);
// A relay looks every second. Where none begins, none runs; where none goes on, its step takes too long or it
// has ended.
constexpr std::chrono::seconds kErasureBeginsWithin(15);
constexpr std::chrono::seconds kErasureGoesOnWithin(90);

const char* const kBlockUse = "block: say add, remove or list";

BlockKind block_kind_named(const std::string& word) {
  const auto kind = relay::block_kind(word);
  if (!kind) throw UsageError(fmt::format("block: '{}' is none of pubkey, event, ip and topic", word));
  return *kind;
}

// A topic's name may stand for two ids (topics.mapping).
std::vector<std::string> block_values(const Config& config, BlockKind kind, const std::string& text) {
  std::vector<std::string> values;
  if (kind == BlockKind::topic) {
    for (const auto& id : topic_ids(config, text)) values.push_back(id.text());
    return values;
  }
  auto value = relay::block_value(kind, text);
  if (!value) throw UserError(value.error().message);
  values.push_back(std::move(*value));
  return values;
}

std::string shown(BlockKind kind, const std::string& value) {
  return fmt::format("{} {}", to_string(kind), value);
}

// Waits until the relays have erased what is stored.
Task<void> wait_for_erasure(pg::Connection& connection, BlockKind kind, std::string value) {
  Progress progress;
  std::optional<relay::BlockErasure> before;
  auto changed_at = std::chrono::steady_clock::now();
  for (;;) {
    const auto now = co_await relay::block_erasure(connection, kind, value, answer_deadline());
    if (!now) {
      progress.end();
      throw UserError(
          fmt::format("{} was unblocked meanwhile: what is left of it stays", shown(kind, value)));
    }
    if (now->is_done) break;
    const auto time = std::chrono::steady_clock::now();
    if (now != before) changed_at = time;
    before = now;
    const auto patience = now->pass_under_way ? kErasureGoesOnWithin : kErasureBeginsWithin;
    if (time - changed_at > patience) {
      progress.end();
      throw UserError(
          "no relay is erasing: what is stored is erased as soon as one runs (`todoke block list` tells)");
    }
    if (progress.is_due() && now->pass_under_way && now->blocks > 0) {
      const auto done = static_cast<std::uint64_t>(now->next_block);
      progress.show(fmt::format("block {} of {} of the tables", now->next_block, now->blocks), done,
                    static_cast<double>(now->next_block) / static_cast<double>(now->blocks));
    }
    co_await sleep_for(kErasureLookEvery);
  }
  progress.end();
  print(fmt::format("erased what was stored of {}\n", shown(kind, value)));
}

std::string added_text(const relay::BlockOrder& order, const relay::BlockDone& done) {
  auto text = fmt::format("{} {}", done.was_there ? "blocked already, changed:" : "blocked",
                          shown(order.kind, order.value));
  if (order.until) text += fmt::format(" until {}", format_timestamp(*order.until, 0));
  if (order.kind == BlockKind::event) {
    if (done.erased > 0) {
      text += ", erased";
    } else if (done.hidden > 0) {
      text += ", deleted";
    } else {
      text += ", not stored or deleted before";
    }
  }
  return text + "\n";
}

Task<void> add_blocks(pg::Connection& connection, std::vector<relay::BlockOrder> orders, bool waits) {
  for (const auto& order : orders) {
    const auto done = co_await relay::add_block(connection, order, answer_deadline());
    if (done.is_full) {
      throw UserError(
          fmt::format("{} blocks are there already: remove one first", relay::BlockSet::kBlocksMax));
    }
    print(added_text(order, done));
  }
  for (const auto& order : orders) {
    if (!order.erases || order.kind == BlockKind::event) continue;
    if (waits) {
      co_await wait_for_erasure(connection, order.kind, order.value);
    } else {
      print(fmt::format("relays erase what is stored of {}; `todoke block list` tells when that is done\n",
                        shown(order.kind, order.value)));
    }
  }
}

Task<void> remove_blocks(pg::Connection& connection, BlockKind kind, std::vector<std::string> values) {
  std::size_t removed = 0;
  for (const auto& value : values) {
    const bool was_there =
        co_await relay::remove_block(connection, kind, value, operator_name(), answer_deadline());
    if (!was_there) continue;
    ++removed;
    print(fmt::format("no longer blocked: {}\n", shown(kind, value)));
  }
  if (removed == 0) throw UserError(fmt::format("{} is not blocked", shown(kind, values.front())));
}

std::string stored_state(const relay::BlockRow& block) {
  if (block.erased_at) return "erased";
  if (block.erase_at) return "erasing";
  return "";
}

std::string until_text(const relay::BlockRow& block) {
  if (!block.until) return "removed";
  return format_timestamp(*block.until, 0) + (block.is_over ? " (over)" : "");
}

std::string block_line(const relay::BlockRow& block) {
  return fmt::format("{:<7} {:<64} {:<20} {:<27} {:<8} {}{}\n", to_string(block.kind), block.value,
                     format_timestamp(block.added_at, 0), until_text(block), stored_state(block),
                     block.added_by, block.reason ? ": " + *block.reason : "");
}

void add_json(JsonWriter& json, const relay::BlockRow& block) {
  const auto time = [&](std::string_view name, const std::optional<SystemTime>& at) {
    json.key(name);
    if (at) {
      json.value(format_timestamp(*at, 0));
    } else {
      json.null();
    }
  };
  json.begin_object().member("kind", to_string(block.kind)).member("value", block.value);
  json.key("reason");
  if (block.reason) {
    json.value(*block.reason);
  } else {
    json.null();
  }
  time("added_at", block.added_at);
  json.member("added_by", block.added_by);
  time("until", block.until);
  json.member("over", block.is_over);
  time("erase_at", block.erase_at);
  time("erased_at", block.erased_at);
  json.end_object();
}

Task<void> print_blocks(pg::Connection& connection, std::optional<BlockKind> kind, bool as_json) {
  JsonWriter json;
  json.begin_array();
  if (!as_json)
    print(fmt::format("{:<7} {:<64} {:<20} {:<27} {:<8} {}\n", "kind", "value", "added", "until", "stored",
                      "by: reason"));
  std::optional<relay::BlockRow> last;
  for (;;) {
    const auto page = co_await relay::list_blocks(connection, kind, last ? &*last : nullptr,
                                                  kBlocksListedAtOnce, answer_deadline());
    for (const auto& block : page) {
      if (as_json) {
        add_json(json, block);
      } else {
        print(block_line(block));
      }
    }
    if (page.size() < static_cast<std::size_t>(kBlocksListedAtOnce)) break;
    last = page.back();
  }
  json.end_array();
  if (as_json) print(json.text() + "\n");
}

void refuse_erasing_all(const Config& config, const std::vector<std::string>& values) {
  if (config.get(relay::keys::kTopicPolicy) != "open") return;
  for (const auto& value : values) {
    if (value != nostr::kGlobalTopic) continue;
    throw UserError(
        fmt::format("with relay.topic_policy = open every event without a topic stands under {}: --erase "
                    "would take them all",
                    value));
  }
}

std::vector<relay::BlockOrder> orders_of(const Config& config, const Arguments& arguments, BlockKind kind,
                                         const std::vector<std::string>& values) {
  relay::BlockOrder order;
  order.kind = kind;
  order.reason = arguments.option("reason");
  if (order.reason && order.reason->size() > relay::kBlockReasonMax)
    throw UserError(
        fmt::format("--reason has {} bytes: {} are the most", order.reason->size(), relay::kBlockReasonMax));
  order.until = time_option(arguments, "until");
  if (order.until && *order.until <= SystemClock().now())
    throw UserError(fmt::format("--until {} is over", format_timestamp(*order.until, 0)));
  order.erases = arguments.has("erase");
  if (order.erases && kind == BlockKind::ip)
    throw UsageError("block add ip: nothing is stored of an address, --erase has nothing to erase");
  if (order.erases && kind == BlockKind::topic) refuse_erasing_all(config, values);
  order.actor = operator_name();
  std::vector<relay::BlockOrder> orders;
  for (const auto& value : values) {
    order.value = value;
    orders.push_back(order);
  }
  return orders;
}

int run_block(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.empty()) throw UsageError(kBlockUse);
  if (words[0] == "list") {
    if (words.size() > 2) throw UsageError("block list: say one of pubkey, event, ip and topic, or none");
    std::optional<BlockKind> kind;
    if (words.size() == 2) kind = block_kind_named(words[1]);
    with_running_database(command_config(arguments), [&](pg::Connection& connection) {
      return print_blocks(connection, kind, arguments.has("json"));
    });
    return 0;
  }
  if (words[0] != "add" && words[0] != "remove") throw UsageError(kBlockUse);
  if (words.size() != 3)
    throw UsageError(fmt::format("block {}: say pubkey, event, ip or topic, and one value", words[0]));
  const auto kind = block_kind_named(words[1]);
  // A topic's name depends on the network that the running node is part of.
  const auto config = command_config(arguments);
  const auto values = block_values(config, kind, words[2]);
  if (words[0] == "remove") {
    with_running_database(
        config, [&](pg::Connection& connection) { return remove_blocks(connection, kind, values); });
    return 0;
  }
  const auto orders = orders_of(config, arguments, kind, values);
  const bool waits = !arguments.has("no-wait");
  with_running_database(config,
                        [&](pg::Connection& connection) { return add_blocks(connection, orders, waits); });
  return 0;
}

}  // namespace

Command block_command() {
  return {
      .name = "block",
      .summary = "keep authors, events, topics and addresses out of the relay",
      .synopsis =
          "add pubkey|event|ip|topic VALUE [--reason TEXT] [--until TIME] [--erase] | remove "
          "pubkey|event|ip|topic VALUE | list [pubkey|event|ip|topic] [--json]",
      .details =
          "VALUE is a public key or an event id (64 hex digits), an address or a block of addresses "
          "(192.0.2.7, 10.0.0.0/8, 2001:db8::/32), or a topic by its id or its name. Running relays of the "
          "database see a change at once and refuse what is blocked with `blocked:`, from clients, gossip "
          "and imports; an address can't connect, and its connections end.\n\n"
          "A blocked event is deleted at once, also where it is stored. It stays deleted when the block is "
          "removed. What is stored of an author or a topic stays as it is, unless --erase says otherwise.\n\n"
          "--erase removes what is stored from the tables, in effect or not, and can't be undone. An event "
          "goes at once; for an author or a topic the relays read through all events, and the command shows "
          "how far they are (--no-wait leaves them to it). To remove the block ends that where it is.\n\n"
          "--reason and who made the block are for the operators alone: `list` shows them, and "
          "cn_admin.audit has every change.",
      .options = {{"reason", "TEXT", "why, for the operators", {"add"}},
                  {"until", "TIME", "ends by itself then (2026-01-31T12:00:00Z)", {"add"}},
                  {"erase", "", "also remove what is stored, for good", {"add"}},
                  {"no-wait", "", "do not wait until everything is erased", {"add"}},
                  {"json", "", "as JSON", {"list"}}},
      .words_max = 3,
      .run = run_block,
  };
}

}  // namespace todoke::app
