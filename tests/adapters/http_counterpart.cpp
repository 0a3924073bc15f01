#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "counterpart.hpp"
#include "harness/http_rig.hpp"
#include "orders/brokers/http/adapter.hpp"

namespace todoke::test {
namespace {

constexpr const char* kFill =
    R"({"status":"ok","order_ref":"b-1","fills":[{"px":0.3,"qty":0.1,"ts":"2025-08-24T00:00:00Z"}]})";
// Nobody listens there.
constexpr const char* kNobody = "http://127.0.0.1:1/orders";

// Knows each key once.
class HttpCounterpart final : public Counterpart {
 public:
  HttpCounterpart() {
    server_.router->add("POST", "/orders", [this](net::Request& request) { return take(request); });
    server_.router->add("GET", "/orders/{key}", [this](net::Request& request) { return show(request); });
    server_.start();
  }

  std::unique_ptr<orders::BrokerAdapter> adapter(const Executor& executor, Behaviour behaviour) override {
    {
      const std::lock_guard lock(mutex_);
      behaviour_ = behaviour;
    }
    orders::HttpAdapterOptions options;
    options.url = net::parse_url(behaviour == Behaviour::is_down ? kNobody : server_.url("/orders")).value();
    options.find_url = server_.url("/orders/{key}");
    return std::make_unique<orders::HttpAdapter>(executor, std::move(options));
  }

  Task<int> executions(std::string broker_id) override {
    const std::lock_guard lock(mutex_);
    co_return executed_[broker_id];
  }

 private:
  Task<net::Response> take(net::Request& request) {
    const auto key = std::string(request.headers.get("Idempotency-Key"));
    auto behaviour = Behaviour::fills;
    bool is_copy = false;
    {
      const std::lock_guard lock(mutex_);
      if (tried_.insert(key).second) behaviour = behaviour_;
      is_copy = executed_[key] > 0;
      const bool executes = behaviour == Behaviour::fills || behaviour == Behaviour::loses_answers;
      if (executes && !is_copy) executed_[key] = 1;
    }
    switch (behaviour) {
      case Behaviour::rejects:
        co_return net::error_response(422, "NO_MARGIN", "no margin");
      case Behaviour::stays_silent:
      case Behaviour::loses_answers:
        co_await silence_.keep();
        co_return net::json_response(201, kFill);
      case Behaviour::fills:
      case Behaviour::is_down:
        break;
    }
    if (is_copy) co_return net::error_response(409, "DUPLICATE_ORDER", "there is one already");
    co_return net::json_response(201, kFill);
  }

  Task<net::Response> show(net::Request& request) {
    const std::lock_guard lock(mutex_);
    if (executed_[request.parameters.at("key")] == 0) co_return net::error_response(404, "NOT_FOUND", "no");
    co_return net::json_response(200, kFill);
  }

  std::mutex mutex_;
  Behaviour behaviour_ = Behaviour::fills;
  std::set<std::string> tried_;
  std::map<std::string, int> executed_;
  net::test::Rig server_;
  net::test::Silence silence_{server_.worker()};
};

}  // namespace

std::unique_ptr<Counterpart> make_http_counterpart() {
  return std::make_unique<HttpCounterpart>();
}

}  // namespace todoke::test
