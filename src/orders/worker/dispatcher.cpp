#include "orders/worker/dispatcher.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "orders/brokers/fix/adapter.hpp"
#include "orders/brokers/fix/watch.hpp"
#include "orders/brokers/http/adapter.hpp"
#include "orders/brokers/paper/adapter.hpp"
#include "orders/worker/config.hpp"
#include "orders/worker/handler.hpp"
#include "orders/worker/monitor.hpp"
#include "orders/worker/retention.hpp"
#include "orders/worker/sql_port.hpp"
#include "pg/channels.hpp"
#include "queue/worker.hpp"
#include "queue/worker_name.hpp"

namespace todoke::orders {
namespace {

Expected<queue::Policy> policy_of(const Config& config) {
  auto table = queue::RetryTable::parse(config.get(keys::kBackoff));
  if (!table) return refuse("outbox.backoff_sec: " + table.error().message);
  return queue::Policy{.attempts_max = static_cast<int>(config.get(keys::kMaxAttempts)),
                       .retry = std::move(*table)};
}

HandlerOptions handler_options(const Config& config) {
  HandlerOptions options;
  options.attempts_max = static_cast<int>(config.get(keys::kMaxAttempts));
  options.broker_timeout = config.get(keys::kBrokerTimeout);
  options.max_age = {config.get(keys::kMaxAgeIoc), config.get(keys::kMaxAgeFok),
                     config.get(keys::kMaxAgeGtc)};
  options.strict_risk = config.get(keys::kRisk) == "strict";
  return options;
}

SqlPortOptions port_options(const Config& config, std::string worker, const BrokerAdapter& adapter,
                            std::function<void()> on_settled) {
  SqlPortOptions options;
  options.may_claim = [&adapter] { return adapter.can_send_now(); };
  options.worker = std::move(worker);
  options.on_settled = std::move(on_settled);
  options.adapter = config.get(keys::kAdapter);
  options.attempts_max = static_cast<int>(config.get(keys::kMaxAttempts));
  options.in_order = config.get(keys::kSerializeBy) == "instrument";
  return options;
}

queue::WorkerOptions worker_options(const Config& config) {
  queue::WorkerOptions options;
  options.name = "order worker";
  options.concurrency = static_cast<std::size_t>(config.get(keys::kConcurrency));
  options.batch = static_cast<std::size_t>(config.get(keys::kBatch));
  options.poll_every = config.get(keys::kPollInterval);
  options.lease = config.get(keys::kLease);
  options.policy = policy_of(config).value_or(queue::Policy());
  options.claims_after_settling = config.get(keys::kSerializeBy) == "instrument";
  return options;
}

Expected<HttpAdapterOptions> http_options(const Config& config) {
  return HttpAdapterOptions::from(config, static_cast<std::size_t>(config.get(keys::kConcurrency)));
}

std::unique_ptr<BrokerAdapter> make_adapter(const DispatcherParts& parts, PaperOptions paper,
                                            std::shared_ptr<FixLink> fix) {
  const auto& name = parts.config.get(keys::kAdapter);
  if (name == "noop") return std::make_unique<NoopAdapter>();
  if (name == "http") {
    auto http = http_options(parts.config);
    // With settings that are refused nothing is started.
    if (!http) return std::make_unique<NoopAdapter>();
    return std::make_unique<HttpAdapter>(parts.executor, std::move(*http));
  }
  if (fix) return std::make_unique<FixAdapter>(std::move(fix));
  return std::make_unique<PaperAdapter>(std::move(paper), parts.pool, parts.clock);
}

// The worker with its parts. validate() refuses wrong settings.
class OrderWorker final : public Service {
 public:
  // `fix`: the session, where the broker is one that speaks FIX.
  OrderWorker(const DispatcherParts& parts, const std::string& name, std::shared_ptr<Halts> halts,
              std::shared_ptr<OrderMetrics> metrics, std::shared_ptr<FixLink> fix)
      : refusal_(refusal_of(parts.config)),
        metrics_(std::move(metrics)),
        listener_(parts.listener),
        halts_(std::move(halts)),
        adapter_(
            make_adapter(parts, PaperOptions::from(parts.config).value_or(PaperOptions()), std::move(fix))),
        port_(parts.database, port_options(parts.config, name, *adapter_, parts.on_settled), *halts_,
              parts.clock, *metrics_),
        handler_(handler_options(parts.config), *adapter_, *halts_, parts.clock, parts.tracer, *metrics_),
        worker_(parts.executor, worker_options(parts.config), port_, handler_, parts.clock,
                {metrics_->claimed, metrics_->lease_expired, metrics_->fenced, metrics_->claim_ms,
                 metrics_->commit_ms, metrics_->breaker}) {}

  [[nodiscard]] std::string_view name() const override { return worker_.name(); }
  [[nodiscard]] bool essential() const override { return false; }
  [[nodiscard]] Expected<void> validate() const override { return refusal_; }

  Task<void> start() override {
    subscription_ =
        listener_.subscribe(pg::channels::kOrdersPending, [this](const pg::Wake&) { worker_.wake(); });
    co_return;
  }
  Task<void> run() override {
    const auto ran = co_await attempt(worker_.run());
    subscription_ = {};
    port_.close();
    if (!ran) std::rethrow_exception(ran.error());
  }
  void stop() override { worker_.stop(); }

  void change(const Config& config) {
    worker_.set_concurrency(static_cast<std::size_t>(config.get(keys::kConcurrency)));
    worker_.set_lease(config.get(keys::kLease));
  }

 private:
  static Expected<void> refusal_of(const Config& config) {
    if (auto policy = policy_of(config); !policy) return refuse(policy.error().message);
    if (auto paper = PaperOptions::from(config); !paper) return refuse(paper.error().message);
    if (config.get(keys::kAdapter) == "http") {
      if (auto http = http_options(config); !http) return refuse(http.error().message);
    }
    if (config.get(keys::kAdapter) == "fix") {
      if (auto fix = FixOptions::from(config); !fix) return refuse(fix.error().message);
    }
    return {};
  }

  Expected<void> refusal_;
  std::shared_ptr<OrderMetrics> metrics_;
  pg::Listener& listener_;
  std::shared_ptr<Halts> halts_;
  std::unique_ptr<BrokerAdapter> adapter_;
  SqlPort port_;
  OrderHandler handler_;
  queue::Worker worker_;
  pg::Listener::Subscription subscription_;
};

}  // namespace

Dispatcher build_dispatcher(DispatcherParts parts) {
  const bool has_worker = parts.config.get(keys::kEnabled);
  const auto& adapter = parts.config.get(keys::kAdapter);
  const auto name = queue::worker_name();
  parts.database.application_name = "todoke orders";
  const auto metrics = std::make_shared<OrderMetrics>(
      parts.metrics, static_cast<int>(parts.config.get(keys::kMaxAttempts)), adapter);
  Dispatcher built;
  built.services.push_back(parts.halts);
  built.on_change = [](const Config&) {};
  std::optional<OrderMonitor::OwnWorker> own;
  if (has_worker) own = OrderMonitor::OwnWorker{name, adapter, parts.config.get(keys::kLease)};
  const auto monitor = std::make_shared<OrderMonitor>(parts.executor, std::move(own), parts.pool,
                                                      parts.health, metrics, parts.metrics);
  built.services.push_back(monitor);
  if (has_worker) {
    // A send that the broker calls a duplicate is looked up then.
    built.stops_within = 2 * parts.config.get(keys::kBrokerTimeout);
    std::shared_ptr<FixLink> fix;
    if (adapter == "fix") {
      // Before the worker, and so stopped after it: tries under way get their answers.
      fix = std::make_shared<FixLink>(FixOptions::from(parts.config).value_or(FixOptions()),
                                      FixLinkParts{parts.executor, parts.clock, parts.pool, parts.database,
                                                   parts.health, parts.metrics, name});
      built.services.push_back(fix);
      const auto timeout = parts.config.get(keys::kBrokerTimeout);
      built.services.push_back(std::make_shared<FixWatch>(
          fix, FixWatchParts{parts.executor, parts.clock, parts.pool, parts.metrics, timeout}));
      built.stops_within += FixLink::kStopMax + timeout + FixWatch::kStatementMax;
    }
    built.services.push_back(std::make_shared<OrderRetention>(parts.executor, parts.database,
                                                              parts.config.get(keys::kHistoryMonths),
                                                              parts.clock, metrics, parts.metrics));
    const auto worker = std::make_shared<OrderWorker>(parts, name, parts.halts, metrics, fix);
    built.services.push_back(worker);
    built.on_change = [worker, monitor](const Config& config) {
      worker->change(config);
      monitor->set_lease(config.get(keys::kLease));
    };
  }
  return built;
}

}  // namespace todoke::orders
