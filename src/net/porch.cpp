#include "net/porch.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <sys/epoll.h>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/hash_table.hpp"
#include "net/transport.hpp"

namespace todoke::net {
namespace {

// Looked at in one turn of the event loop.
constexpr std::size_t kEventsMax = 64;

Fd make_epoll() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) throw NetError(fmt::format("epoll: {}", std::strerror(errno)));
  return fd;
}

}  // namespace

struct Porch::State : std::enable_shared_from_this<State> {
  State(const Executor& executor, std::chrono::nanoseconds p, Hooks h)
      : patience(std::chrono::duration_cast<SteadyTime::duration>(p)),
        hooks(std::move(h)),
        epoll(executor, make_epoll().release()),
        timer(executor) {}

  struct Waiting {
    Guest guest;
    SteadyTime until;
    std::uint64_t number;
  };
  using Line = std::list<Waiting>;

  void wait() {
    epoll.async_wait(asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](boost::system::error_code error) {
                       if (error || self->is_over) return;
                       self->look();
                       if (!self->is_over) self->wait();
                     });
  }

  void look() {
    std::array<epoll_event, kEventsMax> events{};
    const int count = ::epoll_wait(epoll.native_handle(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count && !is_over; ++i) {
      // A hook may have taken it meanwhile.
      const auto found = numbers.find(events[static_cast<std::size_t>(i)].data.u64);
      if (found != numbers.end()) hooks.heard(take(found->second));
    }
  }

  void add(Guest guest) {
    const auto number = next_number++;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = number;
    if (::epoll_ctl(epoll.native_handle(), EPOLL_CTL_ADD, guest.socket.get(), &event) != 0)
      return hooks.late(std::move(guest));  // the system allows no more of them
    line.push_back({std::move(guest), std::chrono::steady_clock::now() + patience, number});
    numbers.emplace(number, std::prev(line.end()));
    if (!is_timed) time_first();
  }

  Guest take(Line::iterator at) {
    ::epoll_ctl(epoll.native_handle(), EPOLL_CTL_DEL, at->guest.socket.get(), nullptr);
    auto guest = std::move(at->guest);
    numbers.erase(at->number);
    line.erase(at);
    return guest;
  }

  // All wait equally long, so the first in line is the first whose time is up.
  void time_first() {
    is_timed = !line.empty();
    if (!is_timed) return;
    timer.expires_at(line.front().until);
    timer.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (error || self->is_over) return;
      const auto now = std::chrono::steady_clock::now();
      while (!self->is_over && !self->line.empty() && self->line.front().until <= now)
        self->hooks.late(self->take(self->line.begin()));
      if (!self->is_over) self->time_first();
    });
  }

  const SteadyTime::duration patience;
  Hooks hooks;
  asio::posix::stream_descriptor epoll;
  asio::steady_timer timer;
  bool is_timed = false;
  bool is_over = false;
  Line line;
  HashMap<std::uint64_t, Line::iterator> numbers;
  std::uint64_t next_number = 0;
};

Porch::Porch(const Executor& executor, std::chrono::nanoseconds patience, Hooks hooks)
    : state_(std::make_shared<State>(executor, patience, std::move(hooks))) {
  state_->wait();
}

Porch::~Porch() {
  state_->is_over = true;
  state_->numbers.clear();
  state_->line.clear();
  boost::system::error_code ignored;  // the descriptor is gone in any case
  state_->epoll.close(ignored);
  state_->timer.cancel();
}

void Porch::add(Guest guest) {
  state_->add(std::move(guest));
}

std::optional<Guest> Porch::take_oldest() {
  if (state_->line.empty()) return std::nullopt;
  return state_->take(state_->line.begin());
}

std::size_t Porch::size() const {
  return state_->line.size();
}

}  // namespace todoke::net
