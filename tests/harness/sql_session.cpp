#include "harness/sql_session.hpp"

#include <stdexcept>
#include <utility>

#include <libpq-fe.h>

#include "harness/await.hpp"

namespace todoke::test {
namespace {

struct Clearer {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clearer>;

std::string row_text(const PGresult* result, int row) {
  std::string text;
  for (int column = 0; column < PQnfields(result); ++column) {
    if (column > 0) text += '|';
    text += PQgetvalue(result, row, column);
  }
  return text;
}

}  // namespace

void SqlSession::Closer::operator()(pg_conn* connection) const {
  PQfinish(connection);
}

SqlSession::SqlSession(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {
  if (!is_open()) throw std::runtime_error(PQerrorMessage(connection_.get()));
  PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
}

bool SqlSession::is_open() const {
  return PQstatus(connection_.get()) == CONNECTION_OK;
}

Rows SqlSession::run(const std::string& sql) {
  const Result result(PQexec(connection_.get(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  Rows rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) rows.push_back(row_text(result.get(), row));
  return rows;
}

std::string SqlSession::value(const std::string& sql) {
  auto rows = run(sql);
  if (rows.size() != 1) throw std::runtime_error(std::to_string(rows.size()) + " rows for " + sql);
  return std::move(rows.front());
}

std::string SqlSession::tried(const std::string& sql) {
  run("BEGIN");
  const Result result(PQexec(connection_.get(), sql.c_str()));
  const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  std::string code = state == nullptr ? "" : state;
  run("ROLLBACK");
  return code;
}

std::string SqlSession::notification() {
  std::string channel;
  wait_until("a notification", [&] {
    PQconsumeInput(connection_.get());
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> got(PQnotifies(connection_.get()), &PQfreemem);
    if (got) channel = got->relname;
    return got != nullptr;
  });
  return channel;
}

}  // namespace todoke::test
