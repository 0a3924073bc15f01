#include "pg/socket.hpp"

#include <cstdint>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace todoke::pg {

// The coroutine hangs on the timer; readiness and interrupt() wake it by cancelling the timer. Callbacks that
// come late carry the number of their round and find another one.
struct Socket::Watch {
  Watch(const Executor& e, int fd) : executor(e), descriptor(e, fd), timer(e) {}

  void ready_for(std::uint64_t of_round, unsigned what, const boost::system::error_code& error) {
    if (of_round != round || error == asio::error::operation_aborted) return;
    // Any other error is libpq's to find when it reads.
    ready |= what;
    timer.cancel();
  }

  Executor executor;
  asio::posix::stream_descriptor descriptor;
  asio::steady_timer timer;
  std::uint64_t round = 0;
  unsigned ready = 0;
};

Socket::~Socket() {
  detach();
}

void Socket::attach(const Executor& executor, int descriptor) {
  if (watch_ && watch_->executor == executor && watch_->descriptor.native_handle() == descriptor) return;
  detach();
  watch_ = std::make_shared<Watch>(executor, descriptor);
}

void Socket::detach() {
  if (!watch_) return;
  ++watch_->round;
  watch_->descriptor.release();
  watch_.reset();
}

Task<unsigned> Socket::wait(unsigned interest, SteadyTime until) {
  auto watch = watch_;
  const auto round = ++watch->round;
  watch->ready = 0;
  watch->timer.expires_at(until);
  if ((interest & kRead) != 0) {
    watch->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                 [watch, round](auto error) { watch->ready_for(round, kRead, error); });
  }
  if ((interest & kWrite) != 0) {
    watch->descriptor.async_wait(asio::posix::descriptor_base::wait_write,
                                 [watch, round](auto error) { watch->ready_for(round, kWrite, error); });
  }
  boost::system::error_code woken;
  co_await watch->timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  ++watch->round;
  if (watch->ready != interest && watch->descriptor.is_open()) watch->descriptor.cancel();
  co_return watch->ready;
}

void Socket::interrupt() {
  if (watch_) watch_->timer.cancel();
}

}  // namespace todoke::pg
