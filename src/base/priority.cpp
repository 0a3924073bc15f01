#include "base/priority.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace todoke {
namespace {

constexpr std::uint64_t kSliceNs = 100'000'000;  // the most that the kernel takes
constexpr int kNiceMore = 5;                     // background, beside an ordinary thread
constexpr int kNiceMoreOfLast = 10;
constexpr int kNiceMax = 19;

// As sched_setattr(2) has it; glibc has neither.
struct SchedAttributes {
  std::uint32_t size = sizeof(SchedAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = kSliceNs;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// The main thread is never lowered: its nice value and its processors are those of the whole process.
bool yield_to_others(pid_t thread, int nice_more) {
  const int nice = std::min(kNiceMax, getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())) + nice_more);
  SchedAttributes attributes;
  attributes.nice = nice;
  if (syscall(SYS_sched_setattr, thread, &attributes, 0U) == 0) return true;
  return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0;
}

bool keep_off_first_processor(pid_t thread) {
  cpu_set_t processors;
  if (sched_getaffinity(getpid(), sizeof(processors), &processors) != 0) return false;
  if (CPU_COUNT(&processors) < 2) return true;
  std::size_t first = 0;
  while (!CPU_ISSET(first, &processors)) ++first;
  CPU_CLR(first, &processors);
  return sched_setaffinity(thread, sizeof(processors), &processors) == 0;
}

}  // namespace

bool set_priority(pid_t thread, Priority priority) {
  switch (priority) {
    case Priority::ordinary:
      return true;
    case Priority::background:
      return yield_to_others(thread, kNiceMore);
    case Priority::last:
      return yield_to_others(thread, kNiceMoreOfLast) && keep_off_first_processor(thread);
  }
  return false;
}

}  // namespace todoke
