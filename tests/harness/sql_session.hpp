// Plain SQL from outside, blocking, on a connection of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct pg_conn;

namespace todoke::test {

using Rows = std::vector<std::string>;

class SqlSession {
 public:
  // Throws what the server says when it does not let us in.
  explicit SqlSession(const std::string& conninfo);

  // Whether the server is still there, as far as the last statement could tell.
  [[nodiscard]] bool is_open() const;

  // Any number of statements; of the last one a text for each row, as `psql -At` prints it: columns separated
  // by |, NULL empty. Throws what the server says.
  Rows run(const std::string& sql);
  // Of its only row; throws when there is another number of them.
  std::string value(const std::string& sql);
  // The SQLSTATE that a statement ends with; empty when it works. Nothing of it stays: it is rolled back.
  std::string tried(const std::string& sql);
  // Waits for a notification (after LISTEN) and gives its channel; throws when none comes.
  std::string notification();

 private:
  struct Closer {
    void operator()(pg_conn* connection) const;
  };
  std::unique_ptr<pg_conn, Closer> connection_;
};

}  // namespace todoke::test
