#include "app/consumers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "app/command.hpp"
#include "app/roles.hpp"
#include "base/text.hpp"
#include "outbox/admin.hpp"

namespace todoke::app {
namespace {

using namespace std::chrono_literals;
using outbox::ConsumerView;

constexpr std::chrono::milliseconds kLookEvery = 500ms;
// No node holds the name for ten seconds, the lease of a node that has died: then none runs that could do it.
constexpr int kLooksWithoutNode = 20;
constexpr std::int32_t kLettersListed = 1'000;

template <class T>
T or_throw(Expected<T> value) {
  if (!value) throw UserError(value.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

std::string duration(double seconds) {
  if (seconds < 1) return "0 s";
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7'200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3'600);
}

// Whether nodes run it, and not a program outside: only then can a command tell whether it runs.
bool is_own(const ConsumerView& view) {
  return view.epoch > 0 || is_own_consumer(view.name);
}

std::string run_by(const ConsumerView& view) {
  const auto role = role_of_consumer(view.name);
  return role.empty() ? std::string("an earlier version") : fmt::format("the role {}", role);
}

std::string condition(const ConsumerView& view) {
  if (view.state != "live") return view.state;
  if (view.paused) return "paused";
  if (!is_own(view)) return "outside";
  return view.held ? "following" : "not running";
}

std::string lost_text(const std::string& name) {
  return fmt::format("{} has lost rows of the log: `todoke consumers rebuild {}`", name, name);
}

Task<ConsumerView> view_of(pg::Connection& connection, std::string name) {
  auto views = co_await outbox::list_consumers(connection, name, answer_deadline());
  if (views.empty()) {
    throw UserError(fmt::format("there is no consumer {}; `todoke consumers list` shows them", name));
  }
  co_return std::move(views.front());
}

outbox::ReplayPoint point_of(const Arguments& arguments) {
  outbox::ReplayPoint point;
  if (arguments.has("from-seq")) point.after_seq = parse_seq(arguments.options.at("from-seq"));
  if (const auto since = time_option(arguments, "from-time"))
    point.since = std::chrono::duration<double>(since->time_since_epoch()).count();
  if (point.after_seq.has_value() == point.since.has_value()) {
    throw UsageError("consumers replay: say --from-seq N or --from-time TIME");
  }
  return point;
}

// Looks now and then until `done` of `total` is reached; one line for each look, with rate and time left.
class Progress {
 public:
  void show(std::int64_t done, std::int64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!began_) {
      began_ = now;
      first_ = done;
    }
    const double took = std::chrono::duration<double>(now - *began_).count();
    const double rate = took > 0 ? static_cast<double>(done - first_) / took : 0;
    auto text = fmt::format("{} of {}", done, total);
    if (rate > 0) {
      text += fmt::format(", {:.0f}/s, {} left", rate, duration(static_cast<double>(total - done) / rate));
    }
    if (text != last_) print(text + "\n");
    last_ = text;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> began_;
  std::int64_t first_ = 0;
  std::string last_;
};

// Ends a wait that can come to nothing, and says why as soon as it is known.
class Waiting {
 public:
  explicit Waiting(std::string what) : what_(std::move(what)) {}

  void look(const ConsumerView& view) {
    if (view.held) {
      without_node_ = 0;
      return;
    }
    if (++without_node_ == 1) {
      note(fmt::format("no node runs {} ({}) at the moment; waiting 10 s for one", view.name, run_by(view)));
    } else if (without_node_ > kLooksWithoutNode) {
      throw UserError(fmt::format("no node runs {}: start one with {}; the {} waits for it", view.name,
                                  run_by(view), what_));
    }
  }

 private:
  std::string what_;
  int without_node_ = 0;
};

std::string paused_text(const ConsumerView& view) {
  return fmt::format("{} is paused: it goes on after `todoke consumers resume {}`", view.name, view.name);
}

Task<void> wait_for_replay(pg::Connection& connection, std::string name) {
  auto view = co_await view_of(connection, name);
  const auto head = view.head;
  const auto total = view.backlog_rows;
  Progress progress;
  Waiting waiting("replay");
  while (view.last_seq < head) {
    if (view.paused) throw UserError(paused_text(view));
    if (view.state == "needs_rebuild") throw UserError(lost_text(name));
    progress.show(std::max<std::int64_t>(total - view.backlog_rows, 0), total);
    waiting.look(view);
    co_await sleep_for(kLookEvery);
    view = co_await view_of(connection, name);
  }
  print(fmt::format("{} has caught up with seq {}\n", name, head));
}

Task<void> wait_for_rebuild(pg::Connection& connection, std::string name) {
  Progress progress;
  Waiting waiting("rebuild");
  for (;;) {
    const auto view = co_await view_of(connection, name);
    if (view.state == "needs_rebuild") throw UserError(lost_text(name));
    if (view.state == "live") {
      print(fmt::format("rebuilt {}\n", name));
      if (view.paused) note(paused_text(view));
      co_return;
    }
    if (view.rebuild_total > 0) progress.show(view.rebuild_done, view.rebuild_total);
    waiting.look(view);
    co_await sleep_for(kLookEvery);
  }
}

}  // namespace

std::int64_t parse_seq(const std::string& text) {
  const auto seq = parse_number<std::int64_t>(text);
  if (seq && *seq >= 0) return *seq;
  throw UsageError(fmt::format("{}: a seq is a whole number from 0 on", text));
}

Task<void> print_consumers(pg::Connection& connection) {
  const auto views = co_await outbox::list_consumers(connection, std::nullopt, answer_deadline());
  print(fmt::format("{:<24} {:<13} {:>16} {:>10} {:>9}  {}\n", "consumer", "state", "seq", "behind", "lag",
                    "dead letters"));
  for (const auto& view : views) {
    print(fmt::format("{:<24} {:<13} {:>16} {:>10} {:>9}  {}{}\n", view.name, condition(view), view.last_seq,
                      view.backlog_rows, duration(view.backlog_seconds), view.dead_letters,
                      view.mandatory ? "  (mandatory)" : ""));
  }
}

Task<void> show_consumer(pg::Connection& connection, std::string name) {
  const auto view = co_await view_of(connection, name);
  print(fmt::format("consumer     {}{}\n", view.name,
                    view.mandatory ? ", mandatory: the log waits for it" : ""));
  print(fmt::format("state        {}\n", condition(view)));
  print(fmt::format("offset       seq {} of {}, moved {} ago\n", view.last_seq, view.head,
                    duration(view.idle_seconds)));
  print(fmt::format("behind       {} rows, {}\n", view.backlog_rows, duration(view.backlog_seconds)));
  if (view.held) {
    print(fmt::format("run by       {}, epoch {}\n", view.owner.value_or("?"), view.epoch));
  } else {
    print(fmt::format("run by       {}\n", is_own(view) ? "no node; it belongs to " + run_by(view)
                                                        : std::string("somebody outside (docs/log.md)")));
  }
  print(fmt::format("passed over  {} rows whose event was purged\n", view.purged_rows));
  print(fmt::format("dead letters {}\n", view.dead_letters));
  if (view.state == "rebuilding") {
    print(fmt::format("rebuild      {} of {}, for {}\n", view.rebuild_done, view.rebuild_total,
                      duration(view.rebuilding_seconds.value_or(0))));
  }
  if (view.state == "needs_rebuild") {
    print(is_own(view)
              ? fmt::format("             {}\n", lost_text(view.name))
              : "             it has lost rows of the log and must start again (docs/log.md, Retention)\n");
  }
}

Task<void> pause_consumer(pg::Connection& connection, std::string name, bool paused) {
  const auto view = co_await view_of(connection, name);
  if (paused && !is_own(view) && !view.has_role) {
    throw UserError(
        fmt::format("{} follows the log from outside and has no role of its own, so nothing would hold it: "
                    "`todoke consumers add {} --renew` makes one",
                    name, name));
  }
  auto done = co_await outbox::set_paused(connection, name, paused, answer_deadline());
  or_throw(std::move(done));
  print(fmt::format("{} {}\n", paused ? "paused" : "resumed", name));
  if (paused && !is_own(view)) {
    print(fmt::format("its role can't move its offset until `todoke consumers resume {}`\n", name));
  }
}

Task<void> replay_consumer(pg::Connection& connection, std::string name, const Arguments& arguments) {
  const auto point = point_of(arguments);
  auto moved = co_await outbox::replay(connection, name, point, answer_deadline());
  const auto from = or_throw(std::move(moved));
  print(fmt::format("{} goes on after seq {}\n", name, from.value));
  const auto view = co_await view_of(connection, name);
  if (view.paused && !is_own(view) && !arguments.has("no-wait")) throw UserError(paused_text(view));
  if (!is_own(view) && !view.paused) {
    print(
        fmt::format("whoever follows the log under that name takes it with the next batch; `todoke consumers "
                    "show {}` tells how far it is\n",
                    name));
  } else if (is_own(view) && !arguments.has("no-wait")) {
    co_await wait_for_replay(connection, name);
  } else if (view.paused) {
    note(paused_text(view));
  }
}

Task<void> rebuild_consumer(pg::Connection& connection, std::string name, bool wait) {
  auto asked = co_await outbox::ask_for_rebuild(connection, name, answer_deadline());
  or_throw(std::move(asked));
  print(fmt::format("{} will be rebuilt by the node that runs it\n", name));
  if (wait) co_await wait_for_rebuild(connection, name);
}

Task<void> dead_letters(pg::Connection& connection, std::string name, std::string action,
                        std::optional<std::int64_t> seq) {
  co_await view_of(connection, name);
  const auto check = [&](std::size_t count) {
    if (seq && count == 0) throw UserError(fmt::format("{} is no dead letter of {}", *seq, name));
  };
  if (action == "retry") {
    const auto count = co_await outbox::retry_dead_letters(connection, name, seq, answer_deadline());
    check(count);
    print(fmt::format("{} will be tried again\n", count));
    co_return;
  }
  if (action == "drop") {
    const auto count = co_await outbox::drop_dead_letters(connection, name, seq, answer_deadline());
    check(count);
    print(fmt::format("{} dropped\n", count));
    co_return;
  }
  const auto letters =
      co_await outbox::list_dead_letters(connection, name, kLettersListed, answer_deadline());
  for (const auto& letter : letters) {
    print(fmt::format("seq {} {} {} in {}, {} tries, {}: {}\n", letter.seq, letter.op, letter.event_id,
                      letter.topic_id, letter.tries, letter.failed_at, letter.error));
  }
  print(fmt::format("{} dead letters{}\n", letters.size(),
                    letters.size() == static_cast<std::size_t>(kLettersListed) ? " or more" : ""));
}

}  // namespace todoke::app
