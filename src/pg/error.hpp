// What can go wrong between this process and Postgres, as types.
//
//   DatabaseError         all of them
//   Error                 the server refused a statement; carries the SQLSTATE
//   ConnectionLost        no connection could be made, or it broke; a statement outside a transaction may
//                         have taken effect
//   DeadlineExceeded      the deadline passed; the statement was cancelled, its transaction did not commit
//   PoolTimeout           no connection became free in time, or too many were waiting already
//   CommitOutcomeUnknown  the answer to COMMIT never came: it may or may not have committed
//   TypeMismatch          a column is not of the type that was asked for: a mistake in the program
//
// No message holds a connection string, a password or the content of a row (the server's DETAIL is kept apart
// for that).
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace todoke::pg {

class DatabaseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Error : public DatabaseError {
 public:
  struct Fields {
    std::string sqlstate;  // 5 characters
    std::string message;   // the server's primary message
    std::string detail;    // may hold row content: not part of what()
    std::string hint;
    std::string schema;
    std::string table;
    std::string column;
    std::string constraint;
    std::string statement;  // the name of the Statement, where there is one
    // In a batch: which statement failed, from 0; the number of statements when it was the COMMIT.
    std::optional<std::size_t> index;
  };

  explicit Error(Fields fields);

  [[nodiscard]] const std::string& sqlstate() const { return fields_.sqlstate; }
  [[nodiscard]] const std::string& constraint() const { return fields_.constraint; }
  [[nodiscard]] std::optional<std::size_t> index() const { return fields_.index; }
  [[nodiscard]] const Fields& fields() const { return fields_; }

  [[nodiscard]] bool is_lock_timeout() const { return is("55P03"); }  // lock_timeout and NOWAIT
  [[nodiscard]] bool is_unique_violation() const { return is("23505"); }
  [[nodiscard]] bool is_check_violation() const { return is("23514"); }
  [[nodiscard]] bool is_read_only_transaction() const { return is("25006"); }
  [[nodiscard]] bool is_disk_full() const { return is("53100"); }
  // A row that no partition takes violates a check that has no name. (The message says more, but in the
  // server's language.)
  [[nodiscard]] bool is_missing_partition() const { return is_check_violation() && constraint().empty(); }
  // The server refuses the values that were sent: 22 (data), 23 (constraints), 54 (limits). Sending them
  // again won't help; sending the batch without the offending row will.
  [[nodiscard]] bool is_about_the_data() const;

 private:
  [[nodiscard]] bool is(std::string_view sqlstate) const { return fields_.sqlstate == sqlstate; }
  Fields fields_;
};

class ConnectionLost : public DatabaseError {
 public:
  using DatabaseError::DatabaseError;
};

class DeadlineExceeded : public DatabaseError {
 public:
  using DatabaseError::DatabaseError;
};

class PoolTimeout : public DatabaseError {
 public:
  using DatabaseError::DatabaseError;
};

class CommitOutcomeUnknown : public DatabaseError {
 public:
  using DatabaseError::DatabaseError;
};

class TypeMismatch : public DatabaseError {
 public:
  using DatabaseError::DatabaseError;
};

// Whether a failure is an Error that is about the data. A missing partition is not.
bool refuses_data(const std::exception_ptr& failure);
bool lacks_partition(const std::exception_ptr& failure);
bool is_unique_violation(const std::exception_ptr& failure);
// Whether lock_timeout ended it.
bool waited_for_lock(const std::exception_ptr& failure);
// Whether the server had no room on its disk: nothing of the transaction was stored.
bool found_disk_full(const std::exception_ptr& failure);

}  // namespace todoke::pg
