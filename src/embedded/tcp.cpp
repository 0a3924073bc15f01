#include "embedded/tcp.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <system_error>

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace todoke::embedded {
namespace {

constexpr std::string_view kRulesBegin = "# todoke: begin";
constexpr std::string_view kRulesEnd = "# todoke: end";

// A chain of certificates has some KiB.
constexpr std::size_t kPemBytesMax = 1024 * 1024;

bool is_host(std::string_view host) {
  if (host == "*") return true;
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == ':' || c == '-' || c == '_' || c == '%';
  });
}

std::string read_pem(const std::string& path, std::string_view key) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kPemBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto got = static_cast<std::size_t>(file.gcount());
  if (!file.is_open() || file.bad() || got == 0)
    throw UserError(fmt::format("{}: {} can't be read", key, path));
  if (got > kPemBytesMax) throw UserError(fmt::format("{}: {} is too large", key, path));
  text.resize(got);
  return text;
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
}

// Postgres has nobody to ask either.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

std::string shown(const TcpAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", address.host, address.port)
                  : fmt::format("{}:{}", address.host, address.port);
}

// 0, or why it can't be listened on.
int try_to_bind(const addrinfo& address) {
  const Fd fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
  if (!fd) return errno;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return ::bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

}  // namespace

Expected<TcpAddress> tcp_address(std::string_view text, std::string_view key) {
  const auto refused = [&] {
    return refuse(
        fmt::format("{}: '{}' is no host:port, such as 127.0.0.1:5433, [::1]:5433 or *:5433", key, text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused();
  auto host = text.substr(0, colon);
  const auto port_text = text.substr(colon + 1);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!is_host(host) || (!brackets && host.find(':') != std::string_view::npos)) return refused();
  const auto port = parse_number<std::uint16_t>(port_text);
  if (!port) return refused();
  if (*port == 0)
    return refuse(fmt::format("{}: name a port; Postgres takes none of the system's choice", key));
  return TcpAddress{std::string(host), *port};
}

Expected<std::optional<Tcp>> tcp_of(const Options& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return refuse("log.tls_cert and log.tls_key belong together: set both or none");
  }
  if (config.listen.empty()) {
    if (!config.tls_cert.empty())
      return refuse("log.tls_cert is for TCP, and log.listen is empty: set it too");
    return std::nullopt;
  }
  auto address = tcp_address(config.listen, kLogListen.spec.name);
  if (!address) return tl::unexpected(address.error());
  return Tcp{*address, config.tls_cert, config.tls_key};
}

TlsFiles read_tls_files(const Tcp& tcp) {
  TlsFiles files{read_pem(tcp.tls_cert, "log.tls_cert"), read_pem(tcp.tls_key, "log.tls_key")};
  const auto cert_text = bio_of(files.cert);
  const std::unique_ptr<X509, decltype(&X509_free)> cert(
      PEM_read_bio_X509(cert_text.get(), nullptr, nullptr, nullptr), &X509_free);
  if (!cert) throw UserError(fmt::format("log.tls_cert: {} holds no certificate (PEM)", tcp.tls_cert));
  const auto key_text = bio_of(files.key);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, &no_passphrase, nullptr), &EVP_PKEY_free);
  if (!key) {
    throw UserError(
        fmt::format("log.tls_key: {} holds no private key (PEM, without a passphrase)", tcp.tls_key));
  }
  if (X509_check_private_key(cert.get(), key.get()) != 1) {
    throw UserError(fmt::format("log.tls_key: {} is not the key of {}", tcp.tls_key, tcp.tls_cert));
  }
  return files;
}

void check_address_free(const TcpAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const char* host = address.host == "*" ? nullptr : address.host.c_str();
  const int failed = ::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) {
    throw UserError(fmt::format("log.listen: {} is no address: {}", shown(address), ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  // A machine without IPv6 still has a localhost; but a port that somebody else has is never shared.
  int refused = 0;
  bool any = false;
  for (const auto* each = found; each != nullptr; each = each->ai_next) {
    const int error = try_to_bind(*each);
    any = any || error == 0;
    if (error != 0 && (refused == 0 || error == EADDRINUSE)) refused = error;
  }
  if (any && refused != EADDRINUSE) return;
  throw UserError(fmt::format("log.listen: can't listen on {}: {}", shown(address),
                              std::generic_category().message(refused)));
}

std::string tcp_settings(const std::optional<Tcp>& tcp) {
  if (!tcp) return "listen_addresses = ''\n";
  // A consumer whose machine has vanished gives its connection back after two minutes and not after two
  // hours.
  auto text = fmt::format(
      "listen_addresses = '{}'\n"
      "tcp_keepalives_idle = 60\n"
      "tcp_keepalives_interval = 10\n"
      "tcp_keepalives_count = 6\n",
      tcp->address.host);
  if (!tcp->tls_cert.empty()) {
    text += fmt::format(
        "ssl = on\n"
        "ssl_cert_file = '{}'\n"
        "ssl_key_file = '{}'\n"
        "ssl_min_protocol_version = 'TLSv1.2'\n",
        kClusterTlsCert, kClusterTlsKey);
  }
  return text;
}

std::string with_host_rules(std::string_view file, const std::optional<Tcp>& tcp) {
  std::string rules;
  if (tcp) {
    rules = fmt::format(
        "{} (log.listen; written anew at each start, and what stands above wins)\n"
        "{} todoke  +todoke_consumers  all  scram-sha-256\n"
        "host    all     all                all  reject\n"
        "{}\n",
        kRulesBegin, tcp->tls_cert.empty() ? "host   " : "hostssl", kRulesEnd);
  }
  const auto line_at = [&](std::string_view start, std::size_t from) {
    auto at = file.find(start, from);
    while (at != std::string_view::npos && at != 0 && file[at - 1] != '\n') at = file.find(start, at + 1);
    return at;
  };
  const auto begin = line_at(kRulesBegin, 0);
  if (begin == std::string_view::npos) return rules + std::string(file);
  // Where the end has gone missing only the first line is known to be ours.
  const auto end = line_at(kRulesEnd, begin);
  const auto last_line = file.find('\n', end == std::string_view::npos ? begin : end);
  const auto rest = last_line == std::string_view::npos ? std::string_view() : file.substr(last_line + 1);
  return std::string(file.substr(0, begin)) + rules + std::string(rest);
}

}  // namespace todoke::embedded
