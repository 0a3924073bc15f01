// The order API in the test's process, without a worker: its services, its listener on a loopback port, a
// database of its own. The services run on one loop and the connections on another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/await.hpp"
#include "harness/pg_proxy.hpp"
#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "http/rig.hpp"
#include "orders/core/json_value.hpp"

namespace todoke::test {

using Flags = std::vector<std::pair<std::string, std::string>>;
using net::test::RawResponse;

// JSON members of a good order, with changes; an empty text leaves one out.
std::string order_body(const std::string& key, const std::map<std::string, std::string>& changes = {});

// A member of a JSON object as text: strings decoded, others as written, "null"; `details.field` goes into
// objects.
std::string member(const std::string& json, std::string_view path);
// Status and code of an answer, such as "503 UNAVAILABLE".
std::string code(const RawResponse& response);

class OrdersRig {
 public:
  explicit OrdersRig(const Flags& flags = {});
  ~OrdersRig();
  OrdersRig(const OrdersRig&) = delete;
  OrdersRig& operator=(const OrdersRig&) = delete;

  // Each over a connection of its own.
  [[nodiscard]] RawResponse post(const std::string& key, const std::string& body,
                                 const std::string& more = "") const;
  [[nodiscard]] RawResponse post(const std::string& key) const { return post(key, order_body(key)); }
  [[nodiscard]] RawResponse get(const std::string& target, const std::string& more = "") const;
  [[nodiscard]] RawResponse ask(const std::string& request) const;
  [[nodiscard]] std::uint16_t port() const;

  [[nodiscard]] const std::string& database_url() const { return database_->url(); }
  // One text for each row; columns separated by |, NULL empty.
  Rows sql(const std::string& statement) const;
  [[nodiscard]] std::string value(const std::string& statement) const;
  [[nodiscard]] double metric(const std::string& series) const;

  // A second node on the same database.
  [[nodiscard]] std::unique_ptr<OrdersRig> sibling() const;
  // The finished spans as text.
  [[nodiscard]] std::vector<std::string> spans();

  // The database as the rig sees it.
  [[nodiscard]] PgProxy& proxy() { return *proxy_; }
  void reload();
  // As a worker of this node does.
  void wake_waiters();
  // As a node at SIGTERM.
  void stop();

 private:
  struct Parts;
  OrdersRig(const Flags& flags, std::shared_ptr<TestDatabase> database);
  std::shared_ptr<TestDatabase> database_;
  std::unique_ptr<PgProxy> proxy_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace todoke::test
