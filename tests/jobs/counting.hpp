// A kind of job that shows what was done: counts from where it left off to `to`, a row of the table `counted`
// for each number. At `hold` it stays until it is cancelled or its worker stops.
#pragma once

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "jobs/kind.hpp"
#include "pg/pool.hpp"

namespace todoke::test {

inline constexpr const char* kCountedTable = "CREATE TABLE counted (job bigint, n bigint)";
inline constexpr pg::Statement kCount{"count", "INSERT INTO counted VALUES ($1, $2)"};

inline std::int64_t number_of(const std::string& json, std::string_view name) {
  const auto read = read_json(json);
  const auto* member = read ? read->member(name) : nullptr;
  std::int64_t number = 0;
  if (member != nullptr) {
    std::from_chars(member->text.data(), member->text.data() + member->text.size(), number);
  }
  return number;
}

inline Task<void> count(pg::Pool& pool, std::int64_t job, std::int64_t n) {
  const auto deadline = Deadline::after(std::chrono::seconds(10));
  const auto lease = co_await pool.acquire(deadline);
  pg::Params params(job, n);
  co_await lease->query(kCount, std::move(params), deadline);
}

inline Task<bool> keep_at(jobs::Run& run, std::int64_t at, std::int64_t to) {
  co_return co_await run.keep(at, to, fmt::format(R"({{"at": {}}})", at));
}

inline jobs::Kind counting(pg::Pool& pool) {
  return {"test.count", [&pool](jobs::Run& run) -> Task<Expected<std::string>> {
            const auto to = number_of(run.params(), "to");
            const auto hold = number_of(run.params(), "hold");
            auto at = number_of(run.state(), "at");
            while (at < to) {
              ++at;
              co_await count(pool, run.id(), at);
              bool goes_on = co_await keep_at(run, at, to);
              while (goes_on && at == hold) {
                co_await sleep_for(std::chrono::milliseconds(5));
                goes_on = co_await keep_at(run, at, to);
              }
              if (!goes_on) break;
            }
            co_return fmt::format(R"({{"at": {}}})", at);
          }};
}

}  // namespace todoke::test
