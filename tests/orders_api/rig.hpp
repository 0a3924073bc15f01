// A node that takes orders and sends none, behind a network to the database that can fail
// (harness/node_rig.hpp), and clients of its API.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "harness/http_rig.hpp"
#include "harness/json_answers.hpp"
#include "harness/node_rig.hpp"

namespace todoke::test {

using net::test::RawResponse;

// JSON members of a good order, with changes; an empty text leaves one out.
std::string order_body(const std::string& key, const std::map<std::string, std::string>& changes = {});

class OrdersRig : public NodeRig {
 public:
  explicit OrdersRig(Flags flags = {}, DatabasePtr database = nullptr);

  // Each over a connection of its own.
  [[nodiscard]] RawResponse post(const std::string& key, const std::string& body,
                                 const std::string& more = "") const;
  [[nodiscard]] RawResponse post(const std::string& key) const { return post(key, order_body(key)); }
  [[nodiscard]] RawResponse get(const std::string& target, const std::string& more = "") const;
  [[nodiscard]] RawResponse ask(const std::string& request) const;

  [[nodiscard]] const std::string& database_url() const { return database()->url(); }
};

}  // namespace todoke::test
