#include "relay_load/loop.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <system_error>
#include <unistd.h>

namespace todoke::bench {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

timespec until(SteadyTime wake) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::max(wake - std::chrono::steady_clock::now(), SteadyTime::duration::zero()));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {static_cast<std::time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

}  // namespace

void interrupt_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second one ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Loop::Loop(bool offers_deflate)
    : offers_deflate_(offers_deflate),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      progress_(std::chrono::steady_clock::now()) {
  check(epoll_ >= 0, "epoll_create1");
  // Otherwise the kernel wakes a thread up to 50 us late, which counts as latency in the phases on schedule.
  prctl(PR_SET_TIMERSLACK, 1UL);
}

Loop::~Loop() {
  ::close(epoll_);
}

std::size_t Loop::connect(const std::string& url) {
  if (interrupted != 0) throw Interrupted();
  connections_.push_back(std::make_unique<Connection>(url, offers_deflate_));
  waits_for_output_.push_back(false);
  watch(connections_.size() - 1, false, true);
  return connections_.size() - 1;
}

void Loop::watch(std::size_t connection, bool output, bool is_new) {
  epoll_event event{};
  event.events = output ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = connection;
  check(
      epoll_ctl(epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connections_[connection]->fd(), &event) == 0,
      "epoll_ctl");
}

void Loop::write_queued() {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    auto& connection = *connections_[i];
    if (connection.has_output()) connection.write();
    if (connection.has_output() != waits_for_output_[i]) {
      waits_for_output_[i] = !waits_for_output_[i];
      watch(i, waits_for_output_[i], false);
    }
  }
}

void Loop::turn(Receiver& receiver, SteadyTime wake) {
  write_queued();
  std::array<epoll_event, 256> events;
  const auto limit = until(wake);
  const int n = epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &limit, nullptr);
  if (interrupted != 0) throw Interrupted();
  if (n < 0 && errno == EINTR) return;
  check(n >= 0, "epoll_pwait2");
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    if ((events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) continue;
    const auto number = static_cast<std::size_t>(events[i].data.u64);
    connections_[number]->read([&](std::string_view message) {
      if (receiver.on_message(number, message)) progress_ = std::chrono::steady_clock::now();
    });
  }
}

}  // namespace todoke::bench
