// Where the embedded Postgres lives, and folders and files that are safe to make there as root.
//
//   <data_dir>/todoke.lock        who uses the folder (DataFolderLock)
//   <data_dir>/postgres           the cluster (PGDATA)
//   <data_dir>/postgres.init-…    a cluster that is being made
//   <data_dir>/run                the socket; private
#pragma once

#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "embedded/child.hpp"
#include "embedded/user.hpp"

namespace todoke::embedded {

// The socket is found under the name of this port, whichever one Postgres has (tcp.hpp).
inline constexpr int kPort = 5432;
// The system takes 107 bytes; some clients take fewer.
inline constexpr std::size_t kSocketPathBytesMax = 100;

struct Layout {
  std::string data_dir;  // absolute
  std::string cluster;
  std::string sockets;  // <data_dir>/run, or /tmp/todoke-<hash> when that is too long for a socket
};

Layout layout_of(const std::string& data_dir);

// The role todoke made the cluster and owns all that is in it; a node works as todoke_node, which can change
// neither the schema nor the audit (docs/database.md).
inline constexpr std::string_view kOwnerRole = "todoke";
inline constexpr std::string_view kNodeRole = "todoke_node";

// For libpq.
std::string url_of(const Layout& layout, std::string_view role = kOwnerRole,
                   std::string_view database = "todoke");

// Makes the data folder with its parents, for `user`. Throws UserError when it can't be made or written to.
void make_data_folder(const Layout& layout, const User& user);
// For root: makes the data folder and gives what root has left in it, and in the folder of the socket, to the
// user. Follows no link and passes over files with a second name, which may be files of others. Throws
// UserError where the folder or the cluster belongs to a third user, or the user can't reach the folder.
// Blocking: a look at every file of the cluster.
void take_over(const Layout& layout, const User& user);
// Makes the folder of the socket, or takes the one that is there when it is ours. A link or a folder of
// somebody else is refused with UserError.
void make_socket_folder(const Layout& layout, const User& user);

// Postgres names its socket after its TCP port. Where that is another one than kPort, a link with the
// usual name leads to it. Without TCP Postgres replaces the link by its socket itself.
void link_socket(const Layout& layout, int port);

// One todoke for one data folder: an flock on <data_dir>/todoke.lock, held as long as this object lives. The
// kernel drops it when the process dies, so a lock is never stale. The file holds the owner's pid, for
// people, and stays behind.
class DataFolderLock {
 public:
  // Throws UserError that names the pid of the owner when another process holds the lock.
  DataFolderLock(const std::string& data_dir, const User& user);

 private:
  Fd fd_;
};

// A folder that a child of `user` is to use. Where a folder above is closed to that user (/root, a private
// temporary folder) the child inherits a descriptor of it. Blocking: asks as that user.
struct SeenFolder {
  Fd fd;  // set: the user can't reach the path
  std::string path;
};
SeenFolder seen_by(const User& user, const std::string& folder);
// How the child names the folder. Adds the descriptor to the program where there is one; `folder` must live
// until the program was spawned.
std::string path_in_child(const SeenFolder& folder, Program& program);

// Makes `path` a folder of mode 0700 that belongs to `user`. It must not exist.
void make_private_folder(const std::string& path, const User& user);
// Replaces the file durably and at once (a new file that is renamed), mode 0600, owner `user`. Follows no
// link that the owner of the folder might have placed there.
void write_private_file(const std::string& path, std::string_view content, const User& user);
// Follows no link either. Throws when it can't be read; at most 1 MiB.
std::string read_private_file(const std::string& path);
void sync_folder(const std::string& path);

}  // namespace todoke::embedded
