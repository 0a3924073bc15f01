#include "relay_load/result.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace todoke::bench {
namespace {

std::chrono::nanoseconds computing_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Stopwatch::Stopwatch() : began_(std::chrono::steady_clock::now()), computing_(computing_time()) {}

double Stopwatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

double Stopwatch::stop(CaseResult& result) const {
  const double passed = seconds();
  const double computing = std::chrono::duration<double>(computing_time() - computing_).count();
  result.client_busy = std::max(result.client_busy, computing / passed);
  return passed;
}

double Latencies::quantile(double share) {
  const auto rank = std::ceil(share * static_cast<double>(ms_.size()));
  const auto index = std::min(ms_.size() - 1, static_cast<std::size_t>(std::max(rank - 1, 0.0)));
  std::nth_element(ms_.begin(), ms_.begin() + static_cast<std::ptrdiff_t>(index), ms_.end());
  return ms_[index];
}

}  // namespace todoke::bench
