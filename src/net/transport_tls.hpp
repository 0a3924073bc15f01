// Transport over TLS (1.2 and later). The parts of a write are put together, so a small answer is one record.
// Costs about 36 KiB of buffers for each connection beyond OpenSSL's own.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"
#include "net/socket.hpp"
#include "net/socket_transport.hpp"

namespace todoke::net {

// Certificates and settings, shared by connections; immutable, so a reload makes a new one and connections
// under way keep theirs.
class TlsContext;
using TlsContextPtr = std::shared_ptr<TlsContext>;

// `cert_path`: PEM, the server's certificate first, then the chain. Refused, with the setting and the file,
// when a file can't be read, when the key has a passphrase (there is nobody to ask for it) and when the key
// does not belong to the certificate.
Expected<TlsContextPtr> make_server_tls(const std::string& cert_path, const std::string& key_path);
// `ca_path` empty: the system's authorities. `verify_peer` false accepts any certificate: for tests and
// probes.
Expected<TlsContextPtr> make_client_tls(const std::string& ca_path, bool verify_peer);

class TlsTransport : public SocketTransport {
 public:
  // Must have ended before anything is read or written. Throws NetError.
  virtual Task<void> handshake() = 0;
};

std::shared_ptr<TlsTransport> make_tls_server_transport(const Executor& executor, Fd socket,
                                                        std::string peer_ip, TlsContextPtr context);
// `host`: the name or address that the certificate must be for; a name is sent as SNI.
std::shared_ptr<TlsTransport> make_tls_client_transport(const Executor& executor, Fd socket,
                                                        std::string peer_ip, TlsContextPtr context,
                                                        const std::string& host);

}  // namespace todoke::net
