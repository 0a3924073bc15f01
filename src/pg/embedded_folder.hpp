// Where the embedded Postgres lives, and folders and files that are safe to make there as root.
//
//   <data_dir>/todoke.lock        who uses the folder (embedded_lock.hpp)
//   <data_dir>/postgres           the cluster (PGDATA)
//   <data_dir>/postgres.init-…    a cluster that is being made
//   <data_dir>/run                the socket; private
#pragma once

#include <string>
#include <string_view>

#include "pg/embedded_user.hpp"
#include "pg/process_fd.hpp"

namespace todoke::pg {

// The socket is found under the name of this port, whichever one Postgres has (embedded_tcp.hpp).
inline constexpr int kEmbeddedPort = 5432;
// The system takes 107 bytes; some clients take fewer.
inline constexpr std::size_t kSocketPathBytesMax = 100;

struct EmbeddedLayout {
  std::string data_dir;  // absolute
  std::string cluster;
  std::string sockets;  // <data_dir>/run, or /tmp/todoke-<uid>-<hash> when that is too long for a socket
};

EmbeddedLayout embedded_layout(const std::string& data_dir, uid_t uid);

// For libpq: the role and the database todoke unless told otherwise.
std::string embedded_connection_string(const EmbeddedLayout& layout, std::string_view database = "todoke");

// Makes the data folder with its parents. Throws UserError when it can't be made or written to.
void make_data_folder(const EmbeddedLayout& layout, const EmbeddedUser& user);
// Makes the folder of the socket, or takes the one that is there when it is ours. A link or a folder of
// somebody else is refused with UserError.
void make_socket_folder(const EmbeddedLayout& layout, const EmbeddedUser& user);

// Postgres names its socket after its TCP port. Where that is another one than kEmbeddedPort, a link with the
// usual name leads to it. Without TCP Postgres replaces the link by its socket itself.
void link_socket(const EmbeddedLayout& layout, int port);

// A folder as a child of `user` can name it: by its path or, when a folder above is closed to that user
// (/root, a private temporary folder), through a descriptor that the child inherits.
struct SeenFolder {
  Fd fd;  // keep it open in the child when it is set
  std::string path;
};
SeenFolder seen_by(const EmbeddedUser& user, const std::string& folder);

// Makes `path` a folder of mode 0700 that belongs to `user`. It must not exist.
void make_private_folder(const std::string& path, const EmbeddedUser& user);
// Replaces the file durably and at once (a new file that is renamed), mode 0600, owner `user`. Follows no
// link that the owner of the folder might have placed there.
void write_private_file(const std::string& path, std::string_view content, const EmbeddedUser& user);
// Follows no link either. Throws when it can't be read; at most 1 MiB.
std::string read_private_file(const std::string& path);
void sync_folder(const std::string& path);

}  // namespace todoke::pg
