// The files of a cluster: making one so that it is there wholly or not at all, and its settings.
// Blocking (some milliseconds of file I/O); the caller runs initdb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "embedded/binaries.hpp"
#include "embedded/folder.hpp"
#include "embedded/tcp.hpp"

namespace todoke::embedded {

// The major version that made the cluster; none when there is no cluster yet. Throws UserError when the
// folder holds something else or belongs to somebody else.
std::optional<int> cluster_major(const Layout& layout, const User& user);

// Removes what earlier, interrupted attempts to make a cluster left behind.
void remove_half_made(const Layout& layout);
// An empty folder beside the cluster's, for initdb.
std::string make_staging_folder(const Layout& layout, const User& user);
// `folder` as the child sees it.
std::vector<std::string> initdb_command(const PostgresBinaries& binaries, const std::string& folder);
// Adds who may connect and the include of todoke.conf, and gives the folder its name.
void finish_cluster(const Layout& layout, const std::string& staging, const User& user);

// At each start: todoke.conf for this machine, the users of today in pg_ident.conf and who may come over TCP
// in pg_hba.conf (others' lines stay), the certificate, and the name of the socket.
void refresh_settings(const Layout& layout, const User& user, const std::optional<Tcp>& tcp,
                      const std::optional<TlsFiles>& certificate);

// The certificate alone; none: removes the one that is there.
void refresh_certificate(const Layout& layout, const User& user, const std::optional<TlsFiles>& certificate);

// `cluster` and `sockets` as the child sees them. What todoke itself depends on stands here, where no file
// overrides it.
std::vector<std::string> postgres_command(const PostgresBinaries& binaries, const std::string& cluster,
                                          const std::string& sockets, int port = kPort);

}  // namespace todoke::embedded
