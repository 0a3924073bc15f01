#include "embedded/cluster.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "embedded/machine.hpp"
#include "embedded/settings.hpp"

namespace todoke::embedded {
namespace {

constexpr std::string_view kStagingPrefix = "postgres.init-";

constexpr std::string_view kHostRules =
    R"(# Written by todoke when it made this cluster; yours to change since then.
# The users in the map todoke (pg_ident.conf) are the roles todoke and todoke_node without a password, by the socket only.
# TYPE  DATABASE     USER                ADDRESS  METHOD
local   all          todoke,todoke_node           peer map=todoke
local   replication  todoke                       peer map=todoke
local   all          all                          scram-sha-256
host    all          all                 all      scram-sha-256
)";

constexpr std::string_view kInclude = R"(
# The settings of todoke, written anew at each start. What stands below this line wins over them.
include 'todoke.conf'
)";

std::string map_line(const std::string& client, std::string_view role) {
  std::string name;
  for (const char c : client) name += c == '"' ? std::string("\"\"") : std::string(1, c);
  return fmt::format("todoke \"{}\" {}", name, role);
}

bool has_line(std::string_view text, std::string_view line) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (text.substr(0, end) == line) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

void add_clients(const std::string& path, const User& user) {
  const auto before = read_private_file(path);
  auto after = before;
  for (const auto& client : user.clients) {
    for (const auto role : {kOwnerRole, kNodeRole}) {
      const auto line = map_line(client, role);
      if (has_line(after, line)) continue;
      if (!after.empty() && after.back() != '\n') after += '\n';
      after += line + '\n';
    }
  }
  if (after != before) write_private_file(path, after, user);
}

void refresh_host_rules(const std::string& path, const User& user, const std::optional<Tcp>& tcp) {
  const auto before = read_private_file(path);
  const auto after = with_host_rules(before, tcp);
  if (after != before) write_private_file(path, after, user);
}

}  // namespace

std::optional<int> cluster_major(const Layout& layout, const User& user) {
  struct stat info{};
  if (::stat(layout.cluster.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw std::system_error(errno, std::generic_category(), "stat " + layout.cluster);
  }
  const auto version_file = layout.cluster + "/PG_VERSION";
  if (!std::filesystem::exists(version_file)) {
    if (S_ISDIR(info.st_mode) && std::filesystem::is_empty(layout.cluster)) return std::nullopt;
    throw UserError(fmt::format(
        "{} exists but is no Postgres cluster: move it away, or choose another data folder", layout.cluster));
  }
  if (info.st_uid != user.uid) {
    throw UserError(fmt::format(
        "the cluster {} belongs to uid {}, but Postgres would run as {} (uid {}): {}", layout.cluster,
        info.st_uid, user.name, user.uid,
        user.identity
            ? fmt::format("set server.user to its owner, or chown -R {} {}", user.name, layout.cluster)
            : std::string("start todoke as its owner (or as root), or choose another data folder")));
  }
  const auto text = read_private_file(version_file);
  int major = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  if (error != std::errc()) throw UserError(fmt::format("{} holds no version", version_file));
  return major;
}

void remove_half_made(const Layout& layout) {
  for (const auto& entry : std::filesystem::directory_iterator(layout.data_dir)) {
    if (!entry.path().filename().string().starts_with(kStagingPrefix)) continue;
    std::error_code error;
    std::filesystem::remove_all(entry.path(), error);
    if (error) {
      // The next cluster gets a name of its own, so this costs only space.
      log::warning("embedded_postgres", "a half-made cluster can't be removed",
                   {{"path", entry.path().string()}, {"error", error.message()}});
    } else {
      log::info("embedded_postgres", "removed a half-made cluster", {{"path", entry.path().string()}});
    }
  }
}

std::string make_staging_folder(const Layout& layout, const User& user) {
  auto path = layout.data_dir + "/" + std::string(kStagingPrefix) + random_hex(8);
  make_private_folder(path, user);
  return path;
}

std::vector<std::string> initdb_command(const PostgresBinaries& binaries, const std::string& folder) {
  return {binaries.bin_dir + "/initdb", "--pgdata=" + folder, "--username=todoke",
          "--data-checksums",           "--encoding=UTF8",    "--locale=C.UTF-8",
          "--auth-local=peer",          "--auth-host=reject", "--no-instructions"};
}

void finish_cluster(const Layout& layout, const std::string& staging, const User& user) {
  const auto main_file = staging + "/postgresql.conf";
  write_private_file(staging + "/pg_hba.conf", kHostRules, user);
  write_private_file(main_file, read_private_file(main_file) + std::string(kInclude), user);
  sync_folder(staging);
  if (std::rename(staging.c_str(), layout.cluster.c_str()) != 0) {
    throw std::system_error(errno, std::generic_category(), "rename to " + layout.cluster);
  }
  sync_folder(layout.data_dir);
}

void refresh_settings(const Layout& layout, const User& user, const std::optional<Tcp>& tcp,
                      const std::optional<TlsFiles>& certificate) {
  const auto settings = settings_for(machine_memory_bytes(), free_disk_bytes(layout.cluster));
  write_private_file(layout.cluster + "/todoke.conf", settings_file(settings, tcp_settings(tcp)), user);
  add_clients(layout.cluster + "/pg_ident.conf", user);
  refresh_host_rules(layout.cluster + "/pg_hba.conf", user, tcp);
  refresh_certificate(layout, user, certificate);
  link_socket(layout, tcp ? tcp->address.port : kPort);
  sync_folder(layout.cluster);
}

void refresh_certificate(const Layout& layout, const User& user, const std::optional<TlsFiles>& certificate) {
  const auto cert = fmt::format("{}/{}", layout.cluster, kClusterTlsCert);
  const auto key = fmt::format("{}/{}", layout.cluster, kClusterTlsKey);
  if (!certificate) {
    for (const auto& path : {cert, key}) std::filesystem::remove(path);
    return;
  }
  write_private_file(cert, certificate->cert, user);
  write_private_file(key, certificate->key, user);
}

std::vector<std::string> postgres_command(const PostgresBinaries& binaries, const std::string& cluster,
                                          const std::string& sockets, int port) {
  std::string quoted_sockets;
  for (const char c : sockets) quoted_sockets += c == '"' ? std::string("\"\"") : std::string(1, c);
  return {binaries.bin_dir + "/postgres",
          "-D",
          cluster,
          "-c",
          fmt::format("unix_socket_directories=\"{}\"", quoted_sockets),
          "-c",
          "unix_socket_permissions=0700",
          "-c",
          fmt::format("port={}", port),
          "-c",
          "logging_collector=off",
          "-c",
          "log_destination=stderr",
          "-c",
          "lc_messages=C"};
}

}  // namespace todoke::embedded
