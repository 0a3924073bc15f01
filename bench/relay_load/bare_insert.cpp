#include "relay_load/bare_insert.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include <libpq-fe.h>

#include "relay_load/loop.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

struct Free {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using ConnectionPtr = std::unique_ptr<PGconn, Free>;
using ResultPtr = std::unique_ptr<PGresult, Free>;

void check(const ConnectionPtr& connection, const ResultPtr& result) {
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
    throw CaseFailed(std::string("a bare INSERT: ") + PQerrorMessage(connection.get()));
}

void run(const ConnectionPtr& connection, const char* statement) {
  check(connection, ResultPtr(PQexec(connection.get(), statement)));
}

}  // namespace

Latencies bare_inserts(const std::string& database, std::size_t count, std::size_t bytes) {
  const ConnectionPtr connection(PQconnectdb(database.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw CaseFailed(std::string("a bare INSERT: ") + PQerrorMessage(connection.get()));
  run(connection, "CREATE TABLE public.bench_bare_insert (id bigserial PRIMARY KEY, content text NOT NULL)");
  check(connection,
        ResultPtr(PQprepare(connection.get(), "bare",
                            "INSERT INTO public.bench_bare_insert (content) VALUES ($1)", 1, nullptr)));
  const std::string text(bytes, 'x');
  const std::array<const char*, 1> values{text.c_str()};
  Latencies latencies;
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_for(kGap);
    const auto began = std::chrono::steady_clock::now();
    check(connection,
          ResultPtr(PQexecPrepared(connection.get(), "bare", 1, values.data(), nullptr, nullptr, 0)));
    latencies.add(std::chrono::steady_clock::now() - began);
  }
  run(connection, "DROP TABLE public.bench_bare_insert");
  return latencies;
}

}  // namespace todoke::bench
