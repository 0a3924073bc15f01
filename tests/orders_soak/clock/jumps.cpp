// Preloaded into a process: every second its wall clock is another one, an hour slow, right, or an hour fast.
// The monotonic clock is left alone.
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock != CLOCK_REALTIME || result != 0) return result;
  constexpr time_t kHourSec = 3'600;
  constexpr time_t kPlaces = 3;
  timespec steady{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
  now->tv_sec += (steady.tv_sec % kPlaces - 1) * kHourSec;
  return 0;
}
