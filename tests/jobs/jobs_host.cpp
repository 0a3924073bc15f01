// jobs_host <connection string>: does jobs of the kind test.count until it is killed.
#include <cstdio>

#include <boost/asio/io_context.hpp>

#include "jobs/counting.hpp"
#include "jobs/runner.hpp"

namespace {

todoke::Task<void> serve(todoke::pg::Listener& listener, todoke::jobs::Runner& runner) {
  co_await listener.start();
  co_await runner.start();
  co_await runner.run();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace todoke;
  if (argc != 2) return 2;
  asio::io_context io;
  const SystemClock clock;
  metrics::Registry registry;
  pg::PoolOptions options;
  options.connect.url = argv[1];
  pg::Pool pool(options, clock, registry);
  pg::ListenerOptions listens;
  listens.connect.url = argv[1];
  pg::Listener listener(io.get_executor(), listens, registry);
  jobs::Kinds kinds;
  kinds.add(test::counting(pool));
  jobs::Runner runner(io.get_executor(), kinds, {}, pool, listener, clock, registry);
  spawn(io.get_executor(), serve(listener, runner), [](const std::exception_ptr& error) {
    if (error) std::fprintf(stderr, "%s\n", describe(error).c_str());
  });
  io.run();
  return 1;
}
