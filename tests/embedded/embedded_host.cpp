// embedded_host <data_dir>: runs the embedded Postgres until SIGTERM. Writes "ready" to stdout once it
// serves.
#include <cstdio>
#include <exception>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/error.hpp"
#include "embedded/postgres.hpp"

namespace {

todoke::Task<void> serve(todoke::embedded::Postgres& service) {
  co_await service.start();
  std::puts("ready");
  std::fflush(stdout);
  co_await service.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  boost::asio::io_context context;
  todoke::embedded::Options config;
  config.data_dir = argv[1];
  todoke::embedded::Postgres service(context.get_executor(), config);
  boost::asio::signal_set signals(context, SIGTERM);
  signals.async_wait([&service](boost::system::error_code error, int) {
    if (!error) service.stop();
  });
  int code = 0;
  todoke::spawn(context.get_executor(), serve(service), [&](const std::exception_ptr& error) {
    if (error) {
      std::fprintf(stderr, "%s\n", todoke::describe(error).c_str());
      code = 1;
    }
    signals.cancel();
  });
  context.run();
  return code;
}
