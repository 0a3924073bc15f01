// COPY: the way to move many rows. Not for conflicts (there is no ON CONFLICT) and not inside of a batch.
// One deadline covers the whole copy; when it passes, the copy is ended on the server and nothing of it
// stays.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "pg/connection.hpp"

namespace todoke::pg {

// COPY … FROM STDIN, in the format that the statement names. The connection belongs to it until finish().
// Dropped without finish() it leaves a connection that is only good for closing. All calls on one executor.
//
//   auto copy = co_await CopyIn::start(conn, sql::kLoadRows, deadline);
//   co_await copy.write("1\tone\n");
//   const auto rows = co_await copy.finish();
class CopyIn {
 public:
  static Task<CopyIn> start(Connection& connection, Statement statement, Deadline deadline);
  CopyIn(CopyIn&& other) noexcept;
  CopyIn& operator=(CopyIn&&) = delete;
  ~CopyIn() = default;

  // Any piece of the stream. Returns when the socket has taken it, so no more than one piece is ever buffered
  // here.
  Task<void> write(std::string_view piece);
  // Returns how many rows were copied.
  Task<std::int64_t> finish();

 private:
  explicit CopyIn(Connection& connection, Statement statement)
      : connection_(&connection), statement_(statement) {}
  Task<void> send_piece(std::string_view piece);
  Task<std::int64_t> complete(const char* abort_reason);

  Connection* connection_;  // null when it is over
  Statement statement_;
};

// COPY … TO STDOUT. `receive` gets the stream in pieces of about 64 KiB and of whole rows, one after the
// other; while it waits, no more is read. When it throws, the copy is cancelled and the exception goes on to
// the caller. Returns the number of rows.
Task<std::int64_t> copy_out(Connection& connection, Statement statement,
                            std::function<Task<void>(std::string_view)> receive, Deadline deadline);

}  // namespace todoke::pg
