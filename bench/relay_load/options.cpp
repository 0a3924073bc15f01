#include "relay_load/options.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"

namespace todoke::bench {
namespace {

bool names(const std::string& word, std::string_view case_name) {
  return case_name == word || (case_name.starts_with(word) && case_name.substr(word.size()).starts_with('-'));
}

std::size_t number(const std::string& option, const std::string& text, std::size_t min, std::size_t max) {
  std::size_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < min || value > max)
    throw UserError(fmt::format("{} takes a number from {} to {}, not '{}'", option, min, max, text));
  return value;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The bounds keep a typing error from filling memory: events are signed and held before they are sent.
void set(Options& options, const std::string& name, const std::string& value) {
  if (name == "--topic") {
    options.topic = value;
  } else if (name == "--events") {
    options.events = number(name, value, 1, 2'000'000);
  } else if (name == "--size") {
    options.event_bytes = number(name, value, 1, 1024 * 1024);
  } else if (name == "--in-flight") {
    options.in_flight = number(name, value, 1, 100'000);
  } else if (name == "--seconds") {
    options.seconds = std::chrono::seconds(number(name, value, 1, 3600));
  } else if (name == "--rate") {
    options.rate = number(name, value, 1, 100'000);
  } else if (name == "--subscribers") {
    options.subscribers = number(name, value, 1, 100'000);
  } else if (name == "--stored") {
    options.stored = number(name, value, 1, 10'000'000);
  } else if (name == "--compression") {
    if (value != "on" && value != "off") throw UserError("--compression is on or off");
    options.deflate = value == "on";
  } else if (name == "--database") {
    options.database = value;
  } else if (name == "--pid") {
    options.pid = static_cast<int>(number(name, value, 1, 4'194'304));
  } else if (name == "--keep") {
    options.keep = value;
  } else if (name == "--only") {
    options.only = words_of(value);
  } else {
    throw UserError(fmt::format("there is no option {}; --help lists them", name));
  }
}

}  // namespace

bool Options::wants(std::string_view case_name) const {
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [&](const auto& word) { return names(word, case_name); });
}

Options parse_options(const std::vector<std::string>& arguments, const std::vector<std::string>& case_names) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (!argument.starts_with("-")) {
      options.urls.push_back(argument);
    } else if (const auto equals = argument.find('='); equals != std::string::npos) {
      set(options, argument.substr(0, equals), argument.substr(equals + 1));
    } else {
      if (i + 1 == arguments.size()) throw UserError(fmt::format("{} needs a value", argument));
      set(options, argument, arguments[i + 1]);
      ++i;
    }
  }
  for (const auto& word : options.only) {
    const bool known = std::any_of(case_names.begin(), case_names.end(),
                                   [&](const auto& case_name) { return names(word, case_name); });
    if (!known)
      throw UserError(
          fmt::format("there is no case '{}'; the cases are {}", word, fmt::join(case_names, ", ")));
  }
  return options;
}

std::string help_text(const std::vector<std::string>& case_names) {
  const Options defaults;
  return fmt::format(
      R"(bench/relay [ws://HOST:PORT/PATH...] [options]

Loads Nostr relays and prints what they did. Several URLs are measured side by side, with ratios to the first.
Without a URL it starts a todoke of its own in a temporary folder (in $TMPDIR, which should be on a disk).

  --topic ID        value of the one `t` tag of every event, and of `#t` in filters ({})
  --events N        events of each ingest case ({})
  --size BYTES      size of an event's JSON, about ({})
  --in-flight N     events without an OK on each connection of an ingest case ({})
  --seconds N       length of each latency phase and each REQ phase ({})
  --rate N          events/s of the phases under load ({})
  --subscribers N   connections of the fan-out and of the memory case ({})
  --stored N        events of the topic in the case `hot` ({})
  --compression on  connections offer permessage-deflate
  --database URL    Postgres for a bare INSERT beside ok-gaps; of a todoke of its own it is that one's
  --pid N           whose memory the case `memory` reads; of a todoke of its own it is that one's
  --keep FILE       writes the numbers with the machine's description there, too
  --only A,B        only these cases, or groups of cases: {}

Exit code: 0; 1 when a case could not be run or an answer did not come within 30 s; 2 for a wrong call.
)",
      defaults.topic, defaults.events, defaults.event_bytes, defaults.in_flight, defaults.seconds.count(),
      defaults.rate, defaults.subscribers, defaults.stored, fmt::join(case_names, ", "));
}

}  // namespace todoke::bench
