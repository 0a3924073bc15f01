// consumer_host URL NAME: a consumer in a process of its own, until SIGTERM. What it does stands in the table
// `effects`. `counts` makes effects only for what claim() gives, `small` takes small batches.
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "consumers.hpp"
#include "instance.hpp"

int main(int argc, char** argv) {
  using namespace todoke;
  using namespace std::chrono_literals;
  if (argc != 3) return 2;
  const std::string url = argv[1];
  const std::string name = argv[2];
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  test::Recorder::Options options{.wants_events = false};
  test::InstanceOptions how;
  how.runner.lease = 600ms;
  if (name == "counts") options.once = outbox::Once::row;
  if (name == "small") {
    how.runner.rows_min = 1;
    how.runner.rows_max = 50;
    how.runner.poll_every = 200ms;
  }
  try {
    test::Instance instance(url, std::make_shared<test::Recorder>(name, options), how);
    int number = 0;
    sigwait(&stop, &number);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
