#include "rig.hpp"

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "harness/metric.hpp"
#include "harness/run_task.hpp"

namespace todoke::test {
namespace {

// A broker in the same process answers sooner, however busy the machine is.
constexpr std::chrono::milliseconds kQuestionMax(5'000);

orders::FixOptions options_for(int port) {
  orders::FixOptions options;
  options.session.host = "127.0.0.1";
  options.session.port = port;
  options.session.sender_comp_id = "TODOKE";
  options.session.target_comp_id = "BROKER";
  options.name = "TODOKE->BROKER";
  options.lease = 4s;
  options.questions_per_sec = 1'000;
  return options;
}

}  // namespace

FixSide::FixSide(const TestDatabase& database, int port, const std::string& worker,
                 const std::function<void(orders::FixOptions&)>& change, orders::FixPauses repeats) {
  auto options = options_for(port);
  if (change) change(options);
  pg::ConnectOptions connect;
  connect.url = database.url();
  pg::PoolOptions pool;
  pool.connect = connect;
  pool.connections_max = 4;
  pool_ = std::make_unique<pg::Pool>(pool, clock_, metrics_);
  link_ = std::make_shared<orders::FixLink>(
      options, orders::FixLinkParts{io_.get_executor(), clock_, *pool_, connect, health_, metrics_, worker});
  adapter_ = std::make_unique<orders::FixAdapter>(link_);
  orders::FixWatchParts watch{io_.get_executor(), clock_, *pool_, metrics_, kQuestionMax};
  watch.repeats = repeats;
  watch_ = std::make_unique<orders::FixWatch>(link_, watch);
  // Stopped one after the other, as a node does.
  run(*link_, [this] { guard_.reset(); });
  run(*watch_, [this] { link_->stop(); });
  thread_ = std::thread([this] { io_.run(); });
}

void FixSide::run(Service& service, std::function<void()> then) {
  asio::co_spawn(
      io_,
      [&service]() -> Task<void> {
        co_await service.start();
        co_await service.run();
      },
      [then = std::move(then)](const std::exception_ptr& error) {
        if (error) ADD_FAILURE() << describe(error);
        then();
      });
}

FixSide::~FixSide() {
  stop();
}

void FixSide::stop() {
  if (stopped_) return;
  stopped_ = true;
  asio::post(io_, [this] { watch_->stop(); });
  thread_.join();
  pool_->close();
  io_.restart();
  io_.poll();
  wait_for_blocking_calls();
}

template <class Value>
Value FixSide::call(Task<Value> task) {
  // Shared: the loop may still be inside of set_value when the caller has its value.
  const auto ended = std::make_shared<std::promise<Value>>();
  auto value = ended->get_future();
  asio::co_spawn(io_, std::move(task), [ended](const std::exception_ptr& error, Value result) {
    if (error) {
      ended->set_exception(error);
    } else {
      ended->set_value(std::move(result));
    }
  });
  return value.get();
}

bool FixSide::can_send_now() {
  const auto told = std::make_shared<std::promise<bool>>();
  auto value = told->get_future();
  asio::post(io_, [this, told] { told->set_value(adapter_->can_send_now()); });
  return value.get();
}

void FixSide::await_logon() {
  wait_until("logon", [this] { return metric("orders_fix_session_state") == 2; });
}

double FixSide::metric(const std::string& series) const {
  return metric_in(metrics_.render(), series).value_or(-1);
}

std::string FixSide::health() const {
  for (const auto& line : health_.lines()) {
    if (line.name == "fix session")
      return fmt::format("{}: {}", to_string(line.health.state), line.health.detail);
  }
  return "";
}

orders::SendOutcome FixSide::send(const orders::SendRequest& request, std::chrono::milliseconds limit) {
  return call(adapter_->send(request, Deadline::after(limit)));
}

orders::FindOutcome FixSide::find(const orders::SendRequest& request, std::chrono::milliseconds limit) {
  return call(adapter_->find(request, Deadline::after(limit)));
}

std::unique_ptr<FixSide> FixTest::side(const std::string& worker,
                                       const std::function<void(orders::FixOptions&)>& change) {
  return std::make_unique<FixSide>(database, broker.port(), worker, change);
}

std::string FixTest::value(const std::string& sql) {
  return run_task([&]() -> Task<std::string> {
    const auto connection = co_await database.connect();
    const auto text = fmt::format("SELECT coalesce(({})::text, '')", sql);
    const pg::Statement statement{"value", text};
    const auto rows = co_await connection->query(statement, {}, Deadline::after(30s));
    co_return rows.one().get<std::string>(0);
  });
}

void FixTest::await(const std::string& sql, const std::string& wanted) {
  wait_until(fmt::format("{} to be {}", sql, wanted), [&] { return value(sql) == wanted; });
}

orders::SendRequest FixTest::order(const std::string& key, TimeInForce time_in_force,
                                   const std::string& status) {
  orders::Order made;
  made.idempotency_key = key;
  made.instrument = "BTC-USD";
  made.qty = 2;
  made.price = *orders::Decimal::parse("10.5");
  made.time_in_force = time_in_force;
  orders_[key] = made;
  run(fmt::format(
      "SET orders.actor = 'test';"
      "INSERT INTO orders.idempo_ledger (idempotency_key, request_digest) VALUES ('{0}', md5('{0}'))"
      " ON CONFLICT DO NOTHING;"
      "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest, status)"
      " VALUES ('{0}', '{{\"instrument\": \"BTC-USD\", \"side\": \"BUY\", \"qty\": 2, \"price\": 10.5,"
      " \"time_in_force\": \"{1}\", \"idempotency_key\": \"{0}\"}}', md5('{0}'), '{2}')"
      " ON CONFLICT DO NOTHING",
      key, to_string(time_in_force), status));
  orders::SendRequest request;
  request.order = &orders_[key];
  request.idempotency_key = key;
  request.outbox_id =
      std::stoll(value(fmt::format("SELECT id FROM orders.outbox_orders WHERE idempotency_key = '{}'", key)));
  request.broker_id = key;
  return request;
}

}  // namespace todoke::test
