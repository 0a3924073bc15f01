#include "embedded/user.hpp"

#include <cerrno>
#include <cstddef>
#include <pwd.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace todoke::embedded {
namespace {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

// The entries of large directories don't fit into the usual buffer; none is as large as this.
constexpr std::size_t kEntryBytesMax = 1024 * 1024;

template <class Lookup>
std::optional<Account> look_up(Lookup lookup) {
  for (std::size_t size = 4096; size <= kEntryBytesMax; size *= 2) {
    std::vector<char> buffer(size);
    passwd entry{};
    passwd* found = nullptr;
    const int error = lookup(&entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (found != nullptr) return Account{found->pw_name, found->pw_uid, found->pw_gid};
    // A missing entry is reported as 0 or, by some sources, as one of these.
    if (error == 0 || error == ENOENT || error == ESRCH || error == EPERM || error == EBADF)
      return std::nullopt;
    throw std::system_error(error, std::generic_category(), "looking up a user");
  }
  throw std::runtime_error("looking up a user: the entry is too large");
}

std::optional<Account> account_named(const std::string& name) {
  return look_up([&name](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
  });
}

std::optional<Account> account_of(uid_t uid) {
  return look_up([uid](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwuid_r(uid, entry, buffer, size, found);
  });
}

// Who has the cluster, or else the folder; nothing where that is root or nobody that has a name.
std::optional<Account> owner_of(const std::string& data_dir) {
  if (data_dir.empty()) return std::nullopt;
  for (const auto& path : {data_dir + "/postgres", data_dir}) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || info.st_uid == 0) continue;
    if (auto account = account_of(info.st_uid)) return account;
  }
  return std::nullopt;
}

}  // namespace

Expected<User> user_for(const std::string& configured, const std::string& data_dir, bool embedded) {
  const uid_t self = ::geteuid();
  if (self != 0) {
    const auto account = account_of(self);
    if (!account) {
      return refuse(
          fmt::format("todoke runs as uid {}, which has no name, and Postgres does not run without one: add "
                      "the user to /etc/passwd, "
                      "run as another user, or give a database with database.url",
                      self));
    }
    return User{account->name, self, std::nullopt, {account->name, "root"}};
  }
  std::optional<Account> account;
  if (configured.empty() || configured == kStayRoot) {
    account = owner_of(data_dir);
    for (const auto* name : {"todoke", "postgres"}) {
      if (!account) account = account_named(name);
    }
    if (!account && !embedded) account = account_named("nobody");
  } else {
    account = account_named(configured);
  }
  if (!account) {
    return refuse(fmt::format(
        "neither todoke nor its Postgres run as root, and {}: install postgresql (it makes the user "
        "postgres), or set server.user to a user of this machine",
        configured.empty() || configured == kStayRoot
            ? "there is neither a user todoke nor postgres"
            : fmt::format("the user '{}' does not exist", configured)));
  }
  if (account->uid == 0) {
    return refuse(
        fmt::format("server.user: '{}' has the rights of root: choose another user", account->name));
  }
  return User{account->name, account->uid, Identity{account->uid, account->gid}, {account->name, "root"}};
}

}  // namespace todoke::embedded
