#include "base/priority.hpp"

#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace todoke {
namespace {

constexpr std::uint64_t kSliceNs = 100'000'000;  // the most that the kernel takes
constexpr int kNiceOfBackground = 5;
constexpr int kNiceOfLast = 10;

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

bool yield_to_others(pid_t thread, int nice) {
  SchedAttributes attributes;
  attributes.nice = nice;
  if (syscall(SYS_sched_setattr, thread, &attributes, 0U) == 0) return true;
  return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0;
}

// The main thread is never lowered: its processors are those of the whole process.
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
      return yield_to_others(thread, kNiceOfBackground);
    case Priority::last:
      return yield_to_others(thread, kNiceOfLast) && keep_off_first_processor(thread);
  }
  return false;
}

}  // namespace todoke
