#include "counterpart.hpp"
#include "harness/test_database.hpp"
#include "orders/brokers/paper/adapter.hpp"

namespace todoke::test {
namespace {

constexpr pg::Statement kBooked{"booked", "SELECT count(*) FROM orders.paper_book WHERE broker_id = $1"};

class PaperCounterpart final : public Counterpart {
 public:
  std::unique_ptr<orders::BrokerAdapter> adapter(const Executor&, Behaviour behaviour) override {
    pg::PoolOptions pool;
    pool.connect.url = database_.url();
    pool_ = std::make_unique<pg::Pool>(pool, clock_, registry_);
    orders::PaperOptions options;
    options.first = {answer(behaviour)};
    return std::make_unique<orders::PaperAdapter>(options, *pool_, clock_);
  }

  Task<int> executions(std::string broker_id) override {
    const auto connection = co_await database_.connect();
    pg::Params params(broker_id);
    const auto rows = co_await connection->query(kBooked, params, Deadline::after(std::chrono::seconds(10)));
    co_return static_cast<int>(rows.one().get<std::int64_t>(0));
  }

 private:
  static orders::PaperAnswer answer(Behaviour behaviour) {
    switch (behaviour) {
      case Behaviour::fills:
        return orders::PaperAnswer::fill;
      case Behaviour::rejects:
        return orders::PaperAnswer::reject;
      case Behaviour::stays_silent:
        return orders::PaperAnswer::timeout;
      case Behaviour::loses_answers:
        return orders::PaperAnswer::lost;
      case Behaviour::is_down:
        return orders::PaperAnswer::down;
    }
    return orders::PaperAnswer::fill;
  }

  TestDatabase database_;
  SystemClock clock_;
  metrics::Registry registry_;
  std::unique_ptr<pg::Pool> pool_;
};

}  // namespace

std::unique_ptr<Counterpart> make_paper_counterpart() {
  return std::make_unique<PaperCounterpart>();
}

}  // namespace todoke::test
