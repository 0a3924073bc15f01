#include "instance.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

#include <boost/asio/post.hpp>

namespace todoke::test {
namespace {

using namespace std::chrono_literals;

pg::ConnectOptions connect_options(const std::string& url, const std::string& name) {
  pg::ConnectOptions options;
  options.url = url;
  options.application_name = name;
  return options;
}

pg::PoolOptions pool_options(const std::string& url, const std::string& name) {
  pg::PoolOptions options;
  options.connect = connect_options(url, name);
  return options;
}

pg::ListenerOptions listener_options(const std::string& url, const std::string& name) {
  pg::ListenerOptions options;
  options.connect = connect_options(url, name + " listener");
  return options;
}

void finish(std::future<void>& running) {
  if (!running.valid()) return;
  // Threads would use what is destroyed.
  if (running.wait_for(net::test::kPatience) != std::future_status::ready) std::abort();
  running.get();
}

}  // namespace

outbox::RunnerOptions quick() {
  outbox::RunnerOptions options;
  options.lease = 2s;
  options.poll_every = 20ms;
  options.retry_first = 1ms;
  options.retry_most = 50ms;
  return options;
}

Instance::Instance(const std::string& database_url, std::shared_ptr<outbox::Consumer> consumer,
                   const InstanceOptions& options)
    : clock_(options.clock != nullptr ? *options.clock : system_clock_),
      pool_(pool_options(database_url, options.name), system_clock_, registry_),
      listener_(loop_.executor(), listener_options(database_url, options.name), registry_),
      runner_(loop_.executor(), std::move(consumer), options.runner, pool_, listener_, log_, clock_,
              registry_) {
  if (options.listens) {
    loop_.run(listener_.start());
    listening_ = loop_.start(listener_.run());
  }
  loop_.run(runner_.start());
  running_ = loop_.start(runner_.run());
}

Instance::~Instance() {
  stop();
}

void Instance::ask_to_stop() {
  thaw();
  if (std::exchange(is_asked_to_stop_, true)) return;
  loop_.call([this] {
    runner_.stop();
    listener_.stop();
  });
}

void Instance::stop() {
  ask_to_stop();
  finish(running_);
  finish(listening_);
  pool_.close();
}

void Instance::freeze() {
  std::promise<void> stands;
  thaw_ = {};
  asio::post(loop_.executor(), [&stands, thawed = thaw_.get_future().share()] {
    stands.set_value();
    thawed.wait();
  });
  stands.get_future().wait();
  is_frozen_ = true;
}

void Instance::thaw() {
  if (std::exchange(is_frozen_, false)) thaw_.set_value();
}

double Instance::metric(const std::string& series) const {
  return metric_of(registry_, series);
}

}  // namespace todoke::test
