// What a background job is for the code that does its work: a function of its kind, which is called with a
// Run and says what came of it.
//
// A job is a row of cn_admin.jobs. It outlives the process: one that was cut off, by a stop, a kill or a
// failure, is run again with the state that it wrote last (docs/jobs.md). So the work is done in pieces, each
// of which may be repeated:
//
//   kinds.add({"topic.link", [&pool](jobs::Run& run) -> Task<Expected<std::string>> {
//     auto place = place_in(run.state());
//     while (!place.is_end) {
//       co_await link_some(pool, run.subject(), place);
//       if (!co_await run.keep(place.linked, std::nullopt, state_of(place))) break;
//     }
//     co_return result_of(place);
//   }});
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/error.hpp"

namespace todoke::jobs {

// One try of a job.
class Run {
 public:
  virtual ~Run() = default;
  Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] virtual std::int64_t id() const = 0;
  [[nodiscard]] virtual const std::string& subject() const = 0;
  [[nodiscard]] virtual const std::string& params() const = 0;  // JSON text of an object
  // As an earlier try wrote it last; {} at the first.
  [[nodiscard]] virtual const std::string& state() const = 0;

  // Writes to the row how much is done, of how much (nothing: nobody knows), and where the next try goes
  // on, as JSON text. False: the try ends now, and what it returns does not matter, because somebody
  // cancelled the job, the node stops, or the row is another worker's. To be called after each piece of work,
  // every second or so: a stop waits for it. Throws what the database throws.
  virtual Task<bool> keep(std::int64_t done, std::optional<std::int64_t> total, std::string state) = 0;
};

// Value: JSON text of the result. Refused: the job can't be done, and no further try will. What it throws is
// tried again, at growing intervals.
using Work = std::function<Task<Expected<std::string>>(Run&)>;

struct Kind {
  std::string name;  // as in cn_admin.jobs.kind: topic.link
  Work work;
};

// The kinds that this process does. Filled before the runner starts.
class Kinds {
 public:
  // Throws std::logic_error for a name that is there already.
  void add(Kind kind);
  // Null where there is none.
  [[nodiscard]] const Kind* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace todoke::jobs
