#include "base/priority.hpp"

#include <cstdint>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace todoke {
namespace {

constexpr std::uint64_t kSliceNs = 100'000'000;  // the most that the kernel takes

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

}  // namespace

bool yield_to_others(pid_t thread, int nice) {
  SchedAttributes attributes;
  attributes.nice = nice;
  if (syscall(SYS_sched_setattr, thread, &attributes, 0U) == 0) return true;
  return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0;
}

}  // namespace todoke
