// A broker behind HTTP or HTTPS: the order as JSON in a POST, its key as Idempotency-Key, one deadline for
// the exchange, connections that are kept. Orders in doubt are looked up where orders.http.find_url says how.
// answer.hpp turns each answer into an outcome.
//
// This adapter promises no more for a repeated key than the broker does: one execution with a broker that
// honours the key or can be asked; with one that does neither, a try after one in doubt may execute twice.
#pragma once

#include <optional>
#include <string>

#include "base/config.hpp"
#include "net/client.hpp"
#include "orders/core/adapter.hpp"

namespace todoke::orders {

struct HttpAdapterOptions {
  net::Url url;
  std::optional<std::string> find_url;  // with {key}
  std::string token;                    // empty: none
  net::ClientOptions client;

  // Reads the token's file. `connections` are kept at most.
  static Expected<HttpAdapterOptions> from(const Config& config, std::size_t connections);
};

class HttpAdapter final : public BrokerAdapter {
 public:
  // Throws UserError when the CA file can't be used.
  HttpAdapter(const Executor& executor, HttpAdapterOptions options);

  [[nodiscard]] std::string_view name() const override { return "http"; }
  Task<SendOutcome> send(SendRequest request, Deadline deadline) override;
  [[nodiscard]] bool can_find() const override { return options_.find_url.has_value(); }
  Task<FindOutcome> find(SendRequest request, Deadline deadline) override;

 private:
  void authorize(net::ClientRequest& request) const;

  HttpAdapterOptions options_;
  net::HttpClient client_;
};

}  // namespace todoke::orders
