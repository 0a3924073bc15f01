#include "relay_load/report.hpp"

#include <algorithm>
#include <fstream>
#include <sys/utsname.h>
#include <thread>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/text.hpp"

namespace todoke::bench {
namespace {

constexpr std::size_t kLabelWidth = 46;
constexpr std::size_t kUnitWidth = 13;
constexpr std::size_t kValueWidth = 11;
constexpr std::size_t kRatioWidth = 9;

std::string letter(std::size_t relay) {
  return relay < 26 ? std::string(1, static_cast<char>('A' + relay)) : std::to_string(relay + 1);
}

const Figure* find(const CaseResult& result, const std::string& key) {
  const auto found = std::find_if(result.figures.begin(), result.figures.end(),
                                  [&](const auto& figure) { return figure.key == key; });
  return found == result.figures.end() ? nullptr : &*found;
}

std::string value_text(const Figure* figure) {
  if (figure == nullptr) return "failed";
  const bool is_small = figure->unit == "ms" || figure->unit == "KiB" || figure->unit == "times";
  return is_small ? fmt::format("{:.2f}", figure->value) : fmt::format("{:.0f}", figure->value);
}

void append_row(std::string& out, const std::vector<RelayResult>& relays, std::size_t case_index,
                const Figure& row) {
  out += fmt::format("{:<{}}{:<{}}", row.label, kLabelWidth, row.unit, kUnitWidth);
  const Figure* first = nullptr;
  for (std::size_t i = 0; i < relays.size(); ++i) {
    const auto* figure = find(relays[i].cases[case_index].result, row.key);
    out += fmt::format("{:>{}}", value_text(figure), kValueWidth);
    if (i == 0) {
      first = figure;
    } else if (first != nullptr && figure != nullptr && first->value > 0) {
      out += fmt::format("{:>{}}", fmt::format("{:.2f}x", figure->value / first->value), kRatioWidth);
    } else {
      out += fmt::format("{:>{}}", "-", kRatioWidth);
    }
  }
  out += "\n";
}

// The case's rows, taken from the first relay that has them.
const std::vector<Figure>& rows_of(const std::vector<RelayResult>& relays, std::size_t case_index) {
  const auto found = std::find_if(relays.begin(), relays.end(), [&](const auto& relay) {
    return !relay.cases[case_index].result.figures.empty();
  });
  return (found == relays.end() ? relays.front() : *found).cases[case_index].result.figures;
}

// More than this, and a figure tells of the client as much as of the relay.
constexpr double kBusyMax = 0.85;

void append_remarks(std::string& out, std::size_t relay, const NamedResult& one) {
  const auto head = fmt::format("{} {}: ", letter(relay), one.case_name);
  if (one.result.failure) out += fmt::format("{}failed: {}\n", head, *one.result.failure);
  for (const auto& [text, count] : one.result.problems) out += fmt::format("{}{} x {}\n", head, count, text);
  if (one.result.client_busy > kBusyMax) {
    out += fmt::format("{}the client was computing {:.0f} % of the time and may be the limit\n", head,
                       100 * one.result.client_busy);
  }
}

void write_case(JsonWriter& json, const NamedResult& one) {
  json.key(one.case_name).begin_object();
  json.key("figures").begin_object();
  for (const auto& figure : one.result.figures) json.member(figure.key, figure.value);
  json.end_object();
  json.key("problems").begin_object();
  for (const auto& [text, count] : one.result.problems) json.member(text, count);
  json.end_object();
  json.key("failure");
  if (one.result.failure) {
    json.value(*one.result.failure);
  } else {
    json.null();
  }
  json.member("client_busy", one.result.client_busy).end_object();
}

// The value of the first line of a file of /proc that begins with `name`; empty where there is none.
std::string value_in(const char* file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    if (trimmed(cut_until(rest, ':')) == name) return std::string(trimmed(rest));
  }
  return {};
}

// What the numbers hold for: they travel to no other machine, their ratios do.
void write_machine(JsonWriter& json) {
  utsname system{};
  uname(&system);
  json.key("machine").begin_object();
  json.member("processor", value_in("/proc/cpuinfo", "model name"));
  json.member("processors", std::thread::hardware_concurrency());
  json.member("memory", value_in("/proc/meminfo", "MemTotal"));
  json.member("kernel", std::string_view(system.release)).end_object();
}

}  // namespace

std::string table(const std::vector<RelayResult>& relays) {
  std::string out;
  for (std::size_t i = 0; i < relays.size(); ++i) out += fmt::format("{}  {}\n", letter(i), relays[i].url);
  out += fmt::format("\n{:<{}}", "", kLabelWidth + kUnitWidth);
  for (std::size_t i = 0; i < relays.size(); ++i) {
    out += fmt::format("{:>{}}", letter(i), kValueWidth);
    if (i > 0) out += fmt::format("{:>{}}", letter(i) + "/A", kRatioWidth);
  }
  out += "\n";
  for (std::size_t c = 0; c < relays.front().cases.size(); ++c) {
    const auto& rows = rows_of(relays, c);
    for (const auto& row : rows) append_row(out, relays, c, row);
    if (rows.empty()) append_row(out, relays, c, {"", relays.front().cases[c].case_name, "", 0});
  }
  std::string remarks;
  for (std::size_t i = 0; i < relays.size(); ++i) {
    append_remarks(remarks, i, relays[i].warm_up);
    if (relays[i].warm_up.result.failure) continue;  // every case would say the same
    for (const auto& one : relays[i].cases) append_remarks(remarks, i, one);
  }
  if (!remarks.empty()) out += "\n" + remarks;
  return out;
}

std::string json_line(const Options& options, const std::vector<RelayResult>& relays) {
  JsonWriter json;
  json.begin_object();
  json.key("options").begin_object();
  json.member("topic", options.topic).member("events", options.events);
  json.member("event_bytes", options.event_bytes).member("in_flight", options.in_flight);
  json.member("seconds", options.seconds.count()).member("rate", options.rate);
  json.member("subscribers", options.subscribers).member("stored", options.stored);
  json.member("deflate", options.deflate).end_object();
  write_machine(json);
  json.key("relays").begin_array();
  for (const auto& relay : relays) {
    json.begin_object().member("url", relay.url).key("cases").begin_object();
    write_case(json, relay.warm_up);
    for (const auto& one : relay.cases) write_case(json, one);
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace todoke::bench
