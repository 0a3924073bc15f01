#include "pg/embedded_database.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include <libpq-fe.h>

namespace todoke::pg {
namespace {

// Connecting to a postmaster that says it is ready takes milliseconds, making a database some hundreds; the
// limits are for a machine that is about to fall over.
constexpr std::string_view kLimits =
    " connect_timeout=10 options='-c statement_timeout=60s' application_name=todoke-setup";

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

Result run(const Connection& connection, const char* sql) {
  Result result(PQexec(connection.get(), sql), &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(std::string("setting up the embedded database: ") +
                             PQerrorMessage(connection.get()));
  }
  return result;
}

}  // namespace

void ensure_embedded_database(const EmbeddedLayout& layout) {
  const auto settings = embedded_connection_string(layout, "postgres") + std::string(kLimits);
  const Connection connection(PQconnectdb(settings.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(std::string("connecting to the embedded database: ") +
                             PQerrorMessage(connection.get()));
  }
  const auto found = run(connection, "SELECT 1 FROM pg_catalog.pg_database WHERE datname = 'todoke'");
  if (PQntuples(found.get()) > 0) return;
  run(connection, "CREATE DATABASE todoke");
}

}  // namespace todoke::pg
