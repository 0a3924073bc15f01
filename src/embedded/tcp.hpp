// TCP on the embedded Postgres, for those who follow the log from outside. Closed unless log.listen says
// otherwise.
//
// Open, it lets in the members of the group todoke_consumers and nobody else, into the database todoke, with
// scram-sha-256; with a certificate, through TLS only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "embedded/config.hpp"

namespace todoke::embedded {

struct TcpAddress {
  std::string host;  // without brackets; * is every address
  std::uint16_t port = 0;
};

struct Tcp {
  TcpAddress address;
  std::string tls_cert;  // path; empty: no TLS
  std::string tls_key;
};

// Contents of PEM files.
struct TlsFiles {
  std::string cert;
  std::string key;
};

// host:port, [::1]:port or *:port with a port from 1 on. `key` is for the message of a refusal.
Expected<TcpAddress> tcp_address(std::string_view text, std::string_view key);

// None where log.listen is empty.
Expected<std::optional<Tcp>> tcp_of(const Options& config);

// Throws UserError when a file can't be read or the two do not belong together.
TlsFiles read_tls_files(const Tcp& tcp);

// Throws UserError when another program has the port or no address of this machine fits. Name lookups block.
void check_address_free(const TcpAddress& address);

// The files of the cluster that Postgres reads its certificate from. They are copies: the originals often
// belong to root alone.
inline constexpr std::string_view kClusterTlsCert = "todoke_tls.crt";
inline constexpr std::string_view kClusterTlsKey = "todoke_tls.key";

// For todoke.conf.
std::string tcp_settings(const std::optional<Tcp>& tcp);

// `file` (pg_hba.conf) with todoke's own lines in it, or without them where TCP is closed. They stand at the
// top, or where they stood before: lines that an operator has written above them win.
std::string with_host_rules(std::string_view file, const std::optional<Tcp>& tcp);

}  // namespace todoke::embedded
