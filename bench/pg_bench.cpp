// What a round trip and a commit cost: durable rows/s through one connection to an embedded Postgres (fsync
// on), with one row a transaction and with batches, by pipelined statements and by arrays.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "embedded_bench.hpp"
#include "pg/connection.hpp"

namespace todoke::bench {
namespace {

constexpr pg::Statement kOne{"one", "INSERT INTO bench (id, body) VALUES ($1, $2)"};
constexpr pg::Statement kMany{"many",
                              "INSERT INTO bench (id, body) SELECT * FROM unnest($1::bigint[], $2::text[])"};
constexpr std::chrono::seconds kEach(3);
const std::string kBody(400, 'x');

std::int64_t next = 0;  // the number of the next row

// Rows/s of `step`, which writes `rows` rows from number `first` on.
template <class Step>
Task<double> rate(std::int64_t rows, Step step) {
  const auto began = std::chrono::steady_clock::now();
  std::int64_t done = 0;
  while (std::chrono::steady_clock::now() - began < kEach) {
    co_await step(next, rows);
    next += rows;
    done += rows;
  }
  co_return static_cast<double>(done) / seconds_since(began);
}

struct Pipelined {
  pg::Connection& connection;
  Task<void> operator()(std::int64_t first, std::int64_t rows) const {
    pg::Batch batch;
    for (std::int64_t i = 0; i < rows; ++i) batch.add(kOne, pg::Params(first + i, kBody));
    co_await connection.run(std::move(batch), soon());
  }
};

struct Arrays {
  pg::Connection& connection;
  Task<void> operator()(std::int64_t first, std::int64_t rows) const {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < rows; ++i) ids.push_back(first + i);
    const std::vector<std::string> bodies(static_cast<std::size_t>(rows), kBody);
    pg::Batch batch;
    batch.add(kMany, pg::Params(ids, bodies));
    co_await connection.run(std::move(batch), soon());
  }
};

Task<void> measure(embedded::Postgres& server) {
  pg::ConnectOptions options;
  options.url = server.connection_string();
  {
    const auto connection = co_await pg::Connection::connect(options, soon());
    co_await connection->execute_script("CREATE TABLE bench (id bigint PRIMARY KEY, body text)", soon());
    const double base = co_await rate(1, Pipelined{*connection});
    std::fputs(fmt::format("{:<34} {:>9.0f} rows/s   1.0x\n", "1 row a transaction", base).c_str(), stdout);
    for (const std::int64_t rows : {16, 128}) {
      const double pipelined = co_await rate(rows, Pipelined{*connection});
      const double arrays = co_await rate(rows, Arrays{*connection});
      std::fputs(fmt::format("{:<34} {:>9.0f} rows/s {:>5.1f}x\n",
                             fmt::format("{} pipelined statements", rows), pipelined, pipelined / base)
                     .c_str(),
                 stdout);
      std::fputs(fmt::format("{:<34} {:>9.0f} rows/s {:>5.1f}x\n", fmt::format("{} rows in one array", rows),
                             arrays, arrays / base)
                     .c_str(),
                 stdout);
    }
  }
}

}  // namespace
}  // namespace todoke::bench

int main() {
  return todoke::bench::run_on_embedded(todoke::bench::measure);
}
