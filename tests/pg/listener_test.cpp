#include "pg/listener.hpp"

#include "base/metrics.hpp"
#include "pg/support.hpp"

namespace todoke::pg {
namespace {

// What one subscriber was told, and a way to wait for more of it.
struct Heard {
  explicit Heard(const Executor& executor) : more(executor) {}
  void operator()(const Wake& wake) {
    if (wake.repoll) ++repolls;
    if (!wake.repoll) payloads.emplace_back(wake.payload);
    more.set();
  }
  Task<void> until_repolls(int wanted) {
    while (repolls < wanted) {
      more.reset();
      co_await more.wait();
    }
  }
  Task<void> until_payloads(std::size_t wanted) {
    while (payloads.size() < wanted) {
      more.reset();
      co_await more.wait();
    }
  }
  Signal more;
  int repolls = 0;
  std::vector<std::string> payloads;
};

class ListenerTest : public testing::Test {
 protected:
  ListenerOptions options() const {
    ListenerOptions made;
    made.connect.url = db_.url();
    made.connect.application_name = "test listener";
    return made;
  }
  Task<void> end_listener_backend(Connection& admin) {
    co_await wait_until(admin,
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                        "'test listener' AND datname = current_database()");
  }

  TestDatabase db_;
  metrics::Registry registry_;
};

Task<void> run_service(Service& service) {
  co_await service.run();
}

TEST_F(ListenerTest, SubscribersAreToldToLookFirstAndThenHearTheirOwnChannel) {
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto admin = co_await db_.connect();
    Listener listener(executor, options(), registry_);
    Heard early(executor);
    Heard late(executor);
    const auto first = listener.subscribe("one", [&early](const Wake& wake) { early(wake); });
    co_await listener.start();
    EXPECT_EQ(early.repolls, 1);
    Beside running(executor, run_service(listener));

    auto second = std::make_unique<Listener::Subscription>(
        listener.subscribe("two", [&late](const Wake& wake) { late(wake); }));
    co_await late.until_repolls(1);
    co_await admin->execute_script("NOTIFY one, 'a'; NOTIFY two, 'b'", soon());
    co_await early.until_payloads(1);
    co_await late.until_payloads(1);
    EXPECT_EQ(early.payloads, std::vector<std::string>{"a"});
    EXPECT_EQ(late.payloads, std::vector<std::string>{"b"});

    second.reset();
    co_await admin->execute_script("NOTIFY two, 'c'; NOTIFY one, 'd'", soon());
    co_await early.until_payloads(2);
    EXPECT_EQ(late.payloads.size(), 1u);

    listener.stop();
    co_await running.join();
  });
}

TEST_F(ListenerTest, AfterItsBackendWasTerminatedItReconnectsAndEverybodyLooksAgain) {
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto admin = co_await db_.connect();
    Listener listener(executor, options(), registry_);
    Heard heard(executor);
    const auto subscription = listener.subscribe("one", [&heard](const Wake& wake) { heard(wake); });
    co_await listener.start();
    Beside running(executor, run_service(listener));
    for (int round = 2; round <= 3; ++round) {
      co_await end_listener_backend(*admin);
      co_await heard.until_repolls(round);
      co_await admin->execute_script("NOTIFY one, 'again'", soon());
      co_await heard.until_payloads(static_cast<std::size_t>(round) - 1);
    }
    listener.stop();
    co_await running.join();
  });
}

TEST_F(ListenerTest, ItAsksTheServerNowAndThenWhetherItIsThere) {
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto admin = co_await db_.connect();
    auto often = options();
    often.ping_every = 10ms;
    Listener listener(executor, often, registry_);
    co_await listener.start();
    Beside running(executor, run_service(listener));
    co_await wait_until(
        *admin,
        "SELECT query = 'SELECT 1' FROM pg_stat_activity WHERE application_name = 'test listener' "
        "AND datname = current_database()");
    listener.stop();
    co_await running.join();
  });
}

TEST_F(ListenerTest, StopBeforeRunTakesEffect) {
  run_task([&]() -> Task<void> {
    Listener listener(co_await asio::this_coro::executor, options(), registry_);
    co_await listener.start();
    listener.stop();
    co_await listener.run();
  });
}

TEST_F(ListenerTest, ChannelsThatPostgresWouldFoldOrCutAreRefused) {
  asio::io_context io;
  Listener listener(io.get_executor(), options(), registry_);
  for (const auto& name : {std::string(), std::string("Upper"), std::string("a b"), std::string("1a"),
                           std::string("x; DROP"), std::string(64, 'x')}) {
    EXPECT_THROW(static_cast<void>(listener.subscribe(name, [](const Wake&) {})), std::invalid_argument)
        << name;
  }
}

}  // namespace
}  // namespace todoke::pg
