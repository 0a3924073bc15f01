// A connection of the worker's own, made again when it is lost. Its session names the worker as the actor, so
// that its changes don't count as made by hand, and plans for queues: nested loops over indexes.
#pragma once

#include <memory>
#include <string>

#include "pg/connection.hpp"

namespace todoke::orders {

class DbLink {
 public:
  explicit DbLink(pg::ConnectOptions options) : options_(std::move(options)) {}

  // Throws as Connection::connect does. The pointer holds until the next call.
  Task<pg::Connection*> get(Deadline deadline);
  void close() { connection_.reset(); }

 private:
  pg::ConnectOptions options_;
  std::unique_ptr<pg::Connection> connection_;
};

}  // namespace todoke::orders
