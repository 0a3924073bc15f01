// A load generator for Nostr relays, ours or another's: durable ingest, latencies of OK and of live delivery,
// pages, fan-out, in one run. docs/benchmarks.md says what each case does. Started by bench/relay.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "own_node.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/loop.hpp"
#include "relay_load/options.hpp"
#include "relay_load/report.hpp"

namespace todoke::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitWrongCall = 2;

void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stderr);
}

// Subscribers are many file descriptors.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// What the case throws is its failure; being interrupted or called wrongly ends the whole run.
template <class Work>
void attempt(CaseResult& result, Work work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    result.figures.clear();
    result.failure = error.what();
  }
}

// Case by case, and in each case relay by relay: what else the machine does meets all of them alike.
std::vector<RelayResult> measure(const Options& options, const std::vector<std::string>& urls) {
  EventMaker events(options.topic, options.event_bytes);
  std::vector<RelayResult> relays;
  for (const auto& url : urls) {
    relays.push_back({url, {"warm-up", {}}, {}});
    auto& result = relays.back().warm_up.result;
    Run run{options, url, events, result};
    attempt(result, [&] { warm_up(run); });
  }
  for (const auto& one : all_cases()) {
    if (!options.wants(one.name)) continue;
    for (auto& relay : relays) {
      auto& result = relay.cases.emplace_back(NamedResult{one.name, {}}).result;
      if (relay.warm_up.result.failure) {
        result.failure = "not run: the warm-up failed";
        continue;
      }
      if (isatty(STDERR_FILENO) != 0) say(fmt::format("{} {}", one.name, relay.url));
      Run run{options, relay.url, events, result};
      attempt(result, [&] { one.run(run); });
    }
  }
  return relays;
}

bool has_failure(const std::vector<RelayResult>& relays) {
  return std::any_of(relays.begin(), relays.end(), [](const auto& relay) {
    return std::any_of(relay.cases.begin(), relay.cases.end(),
                       [](const auto& one) { return one.result.failure.has_value(); });
  });
}

int run(const std::vector<std::string>& arguments) {
  auto options = parse_options(arguments, case_names());
  if (options.help) {
    std::fputs(help_text(case_names()).c_str(), stdout);
    return 0;
  }
  raise_file_limit();
  interrupt_on_signals();
  std::unique_ptr<OwnNode> own;
  auto urls = options.urls;
  if (urls.empty()) {
    own = std::make_unique<OwnNode>();
    urls.push_back("ws://" + own->address() + "/relay");
    options.pid = own->pid();
    options.database = own->database();
  }
  const auto relays = measure(options, urls);
  const auto numbers = json_line(options, relays) + "\n";
  std::fputs((table(relays) + "\n" + numbers).c_str(), stdout);
  if (!options.keep.empty()) {
    std::ofstream kept(options.keep);
    if (!(kept << numbers << std::flush)) throw std::runtime_error("cannot write " + options.keep);
  }
  return has_failure(relays) ? kExitFailed : 0;
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  try {
    return todoke::bench::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const todoke::UserError& error) {
    std::fputs((std::string("bench/relay: ") + error.what() + "\n").c_str(), stderr);
    return todoke::bench::kExitWrongCall;
  } catch (const std::exception& error) {
    std::fputs((std::string("bench/relay: ") + error.what() + "\n").c_str(), stderr);
    return todoke::bench::kExitFailed;
  }
}
