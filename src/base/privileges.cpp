#include "base/privileges.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace todoke {
namespace {

using CapabilityWords = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// By system call: libcap would be one more dependency.
CapabilityWords capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  CapabilityWords words{};
  if (::syscall(SYS_capget, &header, words.data()) != 0) fail("capget");
  return words;
}

bool has_capabilities() {
  for (const auto& word : capabilities()) {
    if (word.effective != 0 || word.permitted != 0 || word.inheritable != 0) return true;
  }
  return false;
}

bool can_return() {
  return ::setresuid(0, 0, 0) == 0 || ::seteuid(0) == 0 || ::setresgid(0, 0, 0) == 0 || ::setegid(0) == 0;
}

bool is_only(uid_t uid, gid_t gid) {
  std::array<uid_t, 3> users{};
  std::array<gid_t, 3> groups{};
  if (::getresuid(&users[0], &users[1], &users[2]) != 0) return false;
  if (::getresgid(&groups[0], &groups[1], &groups[2]) != 0) return false;
  return users == std::array{uid, uid, uid} && groups == std::array{gid, gid, gid};
}

}  // namespace

void refuse_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("prctl(PR_SET_NO_NEW_PRIVS)");
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) fail("prctl(PR_CAP_AMBIENT)");
  auto words = capabilities();
  for (auto& word : words) word.inheritable = 0;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, words.data()) != 0) fail("capset");
}

void become_user(const std::string& name, uid_t uid, gid_t gid) {
  // Groups first: without root they can't be changed any more. glibc changes the ids of all threads.
  if (::initgroups(name.c_str(), gid) != 0) fail("initgroups");
  if (::setresgid(gid, gid, gid) != 0) fail("setresgid");
  if (::setresuid(uid, uid, uid) != 0) fail("setresuid");
  if (uid != 0 && is_only(uid, gid) && !has_capabilities() && !can_return()) return;
  std::fputs("todoke: root was not given up for good; ending\n", stderr);
  std::abort();
}

}  // namespace todoke
