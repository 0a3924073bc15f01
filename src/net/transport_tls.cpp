#include "net/transport_tls.hpp"

#include <arpa/inet.h>
#include <fstream>
#include <memory>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/socket_asio.hpp"
#include "net/watchdog.hpp"

namespace todoke::net {

namespace ssl = asio::ssl;
using boost::system::error_code;

class TlsContext {
 public:
  explicit TlsContext(ssl::context::method method) : context(method) {
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  }
  ssl::context context;
};

namespace {

// A peer that does not answer close-notify holds the connection no longer than this.
constexpr std::chrono::milliseconds kFinishTimeout(1'000);
// Parts are put together up to this; larger writes go out in several pieces.
constexpr std::size_t kCoalesceBytesMax = 64 * 1024;

// The ALPN answer: HTTP/1.1 where the client offers it, no ALPN otherwise.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
                    unsigned int in_length, void*) {
  static constexpr unsigned char kProtocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  const int result =
      SSL_select_next_proto(&chosen, out_length, kProtocols, sizeof(kProtocols), in, in_length);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// Without it OpenSSL asks at the terminal. Notes in `asked` (a bool) that the key has a passphrase.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Expected<PrivateKey> read_private_key(const std::string& path) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(path.c_str(), "r"), &BIO_free);
  bool asked = false;
  PrivateKey key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, &no_passphrase, &asked) : nullptr,
                 &EVP_PKEY_free);
  ERR_clear_error();
  if (key) return key;
  if (asked)
    return refuse(fmt::format("server.tls_key: {} has a passphrase; the node needs the key without", path));
  return refuse(fmt::format("server.tls_key: {} holds no private key (PEM)", path));
}

class TlsStream final : public TlsTransport {
 public:
  TlsStream(const Executor& executor, Fd socket, std::string peer_ip, TlsContextPtr context,
            ssl::stream_base::handshake_type side)
      : context_(std::move(context)),
        stream_(adopt_socket(executor, std::move(socket)), context_->context),
        peer_ip_(std::move(peer_ip)),
        side_(side) {}

  // Before the handshake, on the client's side.
  void expect_host(const std::string& host) {
    in6_addr parsed{};
    const bool is_name =
        ::inet_pton(AF_INET, host.c_str(), &parsed) != 1 && ::inet_pton(AF_INET6, host.c_str(), &parsed) != 1;
    if (is_name) {  // spelled out: the macro SSL_set_tlsext_host_name contains an old-style cast
      SSL_ctrl(stream_.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(host.c_str()));
    }
    if (SSL_get_verify_mode(stream_.native_handle()) != SSL_VERIFY_NONE) {
      stream_.set_verify_callback(ssl::host_name_verification(host));
    }
  }

  Task<void> handshake() override {
    error_code error;
    co_await stream_.async_handshake(side_, asio::redirect_error(asio::use_awaitable, error));
    if (error) throw NetError("TLS handshake: " + error.message());
    established_ = true;
  }

  Task<std::size_t> read_some(std::span<char> into) override {
    error_code error;
    const auto n = co_await stream_.async_read_some(asio::buffer(into.data(), into.size()),
                                                    asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) co_return 0;
    if (error) throw NetError("read: " + error.message());
    co_return n;
  }

  Task<void> write(std::span<const std::string_view> parts) override {
    std::string block;
    for (auto part : parts) {
      while (!part.empty()) {
        const auto piece = part.substr(0, kCoalesceBytesMax - block.size());
        block += piece;
        part.remove_prefix(piece.size());
        if (block.size() == kCoalesceBytesMax) {
          co_await write_block(block);
          block.clear();
        }
      }
    }
    if (!block.empty()) co_await write_block(block);
  }

  Task<void> finish() override {
    if (established_ && stream_.next_layer().is_open()) {
      Watchdog watchdog(executor(), [this] {
        error_code ignored;  // the pending shutdown ends, which is the point
        stream_.next_layer().cancel(ignored);
      });
      watchdog.arm(kFinishTimeout);
      error_code ignored;  // a peer that has gone already needs no goodbye
      co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    }
    error_code ignored;
    stream_.next_layer().shutdown(Socket::shutdown_send, ignored);
  }

  void close() noexcept override {
    error_code ignored;  // the descriptor is gone in any case
    stream_.next_layer().close(ignored);
  }

  [[nodiscard]] bool peer_has_ended() override {
    auto& socket = stream_.next_layer();
    return !socket.is_open() || net::peer_has_ended(socket.native_handle());
  }
  [[nodiscard]] const std::string& peer_ip() const override { return peer_ip_; }
  [[nodiscard]] bool secure() const override { return true; }
  [[nodiscard]] Executor executor() const override {
    return const_cast<TlsStream*>(this)->stream_.get_executor();
  }
  [[nodiscard]] std::uint64_t bytes_sent() const override { return bytes_sent_; }

  // Reads what has come, as far as it is there: TLS 1.3 sends session tickets at any time, and a close-notify
  // looks like them until it is decrypted.
  [[nodiscard]] bool stale() override {
    if (!stream_.next_layer().is_open()) return true;
    error_code error;
    stream_.next_layer().non_blocking(true, error);
    if (error) return true;
    char byte = 0;
    stream_.read_some(asio::buffer(&byte, 1), error);
    return error != asio::error::would_block;
  }

 private:
  Task<void> write_block(const std::string& block) {
    // Counted before: how much of a failed write left the machine is not known.
    bytes_sent_ += block.size();
    error_code error;
    co_await asio::async_write(stream_, asio::buffer(block),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) throw NetError("write: " + error.message());
  }

  TlsContextPtr context_;
  ssl::stream<Socket> stream_;
  std::string peer_ip_;
  ssl::stream_base::handshake_type side_;
  bool established_ = false;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace

Expected<TlsContextPtr> make_server_tls(const std::string& cert_path, const std::string& key_path) {
  auto tls = std::make_shared<TlsContext>(ssl::context::tls_server);
  auto* context = tls->context.native_handle();
  for (const auto& [name, path] : {std::pair("server.tls_cert", cert_path), {"server.tls_key", key_path}}) {
    if (!std::ifstream(path)) return refuse(fmt::format("{}: {} can't be read", name, path));
  }
  const bool has_certificate = SSL_CTX_use_certificate_chain_file(context, cert_path.c_str()) == 1;
  ERR_clear_error();
  if (!has_certificate)
    return refuse(fmt::format("server.tls_cert: {} holds no certificate (PEM)", cert_path));
  const auto key = read_private_key(key_path);
  if (!key) return tl::unexpected(key.error());
  // First: OpenSSL keeps a pair for each type of key and takes a key of another type than the certificate's.
  const bool is_pair = X509_check_private_key(SSL_CTX_get0_certificate(context), key->get()) == 1 &&
                       SSL_CTX_use_PrivateKey(context, key->get()) == 1;
  ERR_clear_error();
  if (!is_pair) {
    return refuse(fmt::format("server.tls_key: {} does not belong to the certificate {} (server.tls_cert)",
                              key_path, cert_path));
  }
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return tls;
}

Expected<TlsContextPtr> make_client_tls(const std::string& ca_path, bool verify_peer) {
  auto tls = std::make_shared<TlsContext>(ssl::context::tls_client);
  error_code error;
  tls->context.set_verify_mode(verify_peer ? ssl::verify_peer : ssl::verify_none, error);
  if (ca_path.empty()) {
    tls->context.set_default_verify_paths(error);
  } else {
    tls->context.load_verify_file(ca_path, error);
  }
  if (error) return refuse(fmt::format("certificate authorities {}: {}", ca_path, error.message()));
  return tls;
}

std::shared_ptr<TlsTransport> make_tls_server_transport(const Executor& executor, Fd socket,
                                                        std::string peer_ip, TlsContextPtr context) {
  return std::make_shared<TlsStream>(executor, std::move(socket), std::move(peer_ip), std::move(context),
                                     ssl::stream_base::server);
}

std::shared_ptr<TlsTransport> make_tls_client_transport(const Executor& executor, Fd socket,
                                                        std::string peer_ip, TlsContextPtr context,
                                                        const std::string& host) {
  auto stream = std::make_shared<TlsStream>(executor, std::move(socket), std::move(peer_ip),
                                            std::move(context), ssl::stream_base::client);
  stream->expect_host(host);
  return stream;
}

}  // namespace todoke::net
