#include <array>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "handlers.hpp"
#include "harness/certificate.hpp"
#include "harness/http_rig.hpp"
#include "net/client.hpp"
#include "net/transport_tls.hpp"

namespace todoke::net::test {
namespace {

struct HttpTls : testing::Test {
  TestCertificate certificate;
  Rig rig;

  HttpTls() {
    rig.router->add("GET", "/who", who);
    rig.router->add("POST", "/echo", echo);
    rig.config.tls_cert = certificate.cert();
    rig.config.tls_key = certificate.key();
  }

  Response ask(const ClientOptions& options, ClientRequest request) {
    Response response;
    rig.loop().run(ask_there(options, std::move(request), response));
    return response;
  }
  Task<void> ask_there(ClientOptions options, ClientRequest request, Response& response) {
    HttpClient client(rig.loop().executor(), options);
    response = co_await client.send(std::move(request), Deadline::after(kPatience));
  }
  ClientRequest request(std::string_view target, bool secure = true) {
    ClientRequest r;
    r.url = parse_url(rig.url(target, secure)).value();
    return r;
  }
  // The common name of the certificate that new connections get.
  std::string served_name() {
    return run_command(
        fmt::format("openssl s_client -connect 127.0.0.1:{} </dev/null 2>/dev/null | "
                    "openssl x509 -noout -subject -nameopt multiline | grep commonName",
                    rig.port()));
  }
};

TEST_F(HttpTls, RequestsAreAnsweredAndSecure) {
  rig.start();
  ClientOptions options;
  options.ca_file = certificate.cert();
  EXPECT_EQ(ask(options, request("/who")).body, "127.0.0.1 secure");
}

TEST_F(HttpTls, LargeBodiesPassInBothDirections) {
  rig.start();
  ClientOptions options;
  options.ca_file = certificate.cert();
  auto large = request("/echo");
  large.method = "POST";
  for (int i = 0; large.body.size() < 900'000; ++i) large.body += std::to_string(i);
  const auto body = large.body;
  EXPECT_EQ(ask(options, std::move(large)).body, body);
}

TEST_F(HttpTls, CertificateThatNobodyVouchesForIsRefusedByTheClient) {
  rig.start();
  try {
    ask({}, request("/who"));
    FAIL() << "the certificate was accepted";
  } catch (const ClientError& error) {
    EXPECT_EQ(error.kind(), ClientError::Kind::connect);
    EXPECT_FALSE(error.peer_may_have_seen());
  }
  ClientOptions careless;
  careless.verify_peer = false;
  EXPECT_EQ(ask(careless, request("/who")).status, 200);
}

TEST_F(HttpTls, CertificateForAnotherNameIsRefusedByTheClient) {
  rig.start();
  ClientOptions options;
  options.ca_file = certificate.cert();
  auto other = request("/who");
  other.url.host = "127.0.0.2";
  EXPECT_THROW(ask(options, std::move(other)), ClientError);
}

TEST_F(HttpTls, PlainHttpOnATlsPortIsClosed) {
  rig.start();
  RawClient client(rig.port());
  client.send(get("/who"));
  EXPECT_EQ(client.read_response().status, 0);
}

TEST_F(HttpTls, OldProtocolVersionsAreRefused) {
  rig.start();
  EXPECT_THROW(
      run_command(fmt::format("openssl s_client -tls1_1 -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:{} "
                              "</dev/null >/dev/null 2>&1",
                              rig.port())),
      std::runtime_error);
  EXPECT_NO_THROW(run_command(
      fmt::format("openssl s_client -tls1_2 -connect 127.0.0.1:{} </dev/null >/dev/null 2>&1", rig.port())));
}

TEST_F(HttpTls, HandshakesOfAnAddressAreCountedAndOneTooManyIsClosedBeforeItBegins) {
  rig.config.limits.handshakes_per_minute = 2;
  rig.start();
  ClientOptions options;
  options.ca_file = certificate.cert();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(options, request("/who")).status, 200);
  RawClient third(rig.port());
  third.send("whatever");
  EXPECT_TRUE(third.ended());
  EXPECT_EQ(rig.metric("todoke_http_connections_refused_total{listener=\"public\",reason=\"handshakes\"}"),
            1);
  EXPECT_EQ(rig.metric("todoke_rate_limited_total{verb=\"handshake\"}"), 1);
}

TEST_F(HttpTls, StalledHandshakeIsCut) {
  rig.config.limits.header_timeout = std::chrono::milliseconds(50);
  rig.start();
  RawClient client(rig.port());
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpTls, ReloadServesTheNewCertificateAndKeepsTheOldWhenItIsBroken) {
  rig.start();
  EXPECT_NE(served_name().find("first"), std::string::npos);
  certificate.renew("second");
  rig.loop().call([&] { EXPECT_TRUE(rig.server().reload()); });
  EXPECT_NE(served_name().find("second"), std::string::npos);
  std::ofstream(certificate.cert()) << "no certificate";
  rig.loop().call([&] { EXPECT_FALSE(rig.server().reload()); });
  EXPECT_NE(served_name().find("second"), std::string::npos);
}

TEST_F(HttpTls, AKeyOfAnotherTypeThanTheCertificateIsRefusedAndAReloadKeepsTheOldPair) {
  rig.start();
  certificate.replace_key_by_rsa();
  rig.loop().call([&] {
    const auto reloaded = rig.server().reload();
    ASSERT_FALSE(reloaded);
    EXPECT_NE(reloaded.error().message.find("does not belong to the certificate"), std::string::npos);
  });
  EXPECT_NE(served_name().find("first"), std::string::npos) << "the old pair is in use";
  auto config = rig.config;
  config.router = rig.router;
  HttpServer server(config, rig.loop().executor(), {rig.worker()}, rig.registry);
  EXPECT_FALSE(server.validate());
}

TEST_F(HttpTls, WhatIsWrongWithAPairIsSaidWithTheSettingAndTheFile) {
  const auto refusal = [](const std::string& cert, const std::string& key) {
    const auto tls = make_server_tls(cert, key);
    return tls ? std::string("none") : tls.error().message;
  };
  const auto& [cert, key] = std::pair(certificate.cert(), certificate.key());
  const TestCertificate other;
  EXPECT_EQ(refusal(cert, other.key()),
            fmt::format("server.tls_key: {} does not belong to the certificate {} (server.tls_cert)",
                        other.key(), cert));
  EXPECT_EQ(refusal(key, cert), fmt::format("server.tls_cert: {} holds no certificate (PEM)", key));
  EXPECT_EQ(refusal(cert, cert), fmt::format("server.tls_key: {} holds no private key (PEM)", cert));
  EXPECT_EQ(refusal("/nowhere/c.pem", key), "server.tls_cert: /nowhere/c.pem can't be read");
  EXPECT_EQ(refusal(cert, "/nowhere/k.pem"), "server.tls_key: /nowhere/k.pem can't be read");
}

// A prompt would read from the terminal, and hold up the start where there is one.
TEST_F(HttpTls, AKeyWithAPassphraseIsRefusedWithoutAQuestion) {
  for (const auto* kind : {"-traditional", ""}) {
    run_command(fmt::format("openssl pkey {} -aes256 -passout pass:secret -in {} -out {}.locked 2>&1", kind,
                            certificate.key(), certificate.key()));
    const auto tls = make_server_tls(certificate.cert(), certificate.key() + ".locked");
    ASSERT_FALSE(tls);
    EXPECT_EQ(tls.error().message,
              fmt::format("server.tls_key: {}.locked has a passphrase; the node needs the key without",
                          certificate.key()));
  }
}

TEST_F(HttpTls, FailedHandshakesAreCountedAndLoggedOnceAMinute) {
  std::mutex mutex;
  int lines = 0;
  const log::Capture capture([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("TLS handshakes failed") != std::string_view::npos) ++lines;
  });
  rig.start();
  constexpr int kFailures = 5;
  for (int i = 0; i < kFailures; ++i) {
    RawClient client(rig.port());
    client.send(get("/who"));
    EXPECT_EQ(client.read_response().status, 0);
  }
  const auto* series = "todoke_http_tls_handshakes_failed_total{listener=\"public\"}";
  EXPECT_TRUE(rig.await_metric(series, kFailures));
  log::flush();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lines, 1);
}

TEST_F(HttpTls, ConfigurationThatCannotWorkIsRefusedBeforeTheStart) {
  const auto refused = [&](const ServerConfig& config) {
    HttpServer server(config, rig.loop().executor(), {rig.worker()}, rig.registry);
    return !server.validate().has_value();
  };
  auto config = rig.config;
  config.router = rig.router;
  EXPECT_FALSE(refused(config));
  auto half = config;
  half.tls_key.clear();
  EXPECT_TRUE(refused(half));
  auto missing = config;
  missing.tls_cert = "/nowhere/cert.pem";
  EXPECT_TRUE(refused(missing));
  TestCertificate other;
  auto mismatch = config;
  mismatch.tls_key = other.key();
  EXPECT_TRUE(refused(mismatch));
  auto proxies = config;
  proxies.trusted_proxies = {"everybody"};
  EXPECT_TRUE(refused(proxies));
  auto address = config;
  address.listen = "nonsense";
  EXPECT_TRUE(refused(address));
}

TEST_F(HttpTls, AddressInUseIsAnErrorForThePersonAtTheTerminal) {
  rig.start();
  auto config = rig.config;
  config.router = rig.router;
  config.listen = rig.server().address();
  HttpServer second(config, rig.loop().executor(), {rig.worker()}, rig.registry);
  EXPECT_THROW(rig.loop().run(second.start()), UserError);
  config.listen = "no-such-host.invalid:1";
  HttpServer nowhere(config, rig.loop().executor(), {rig.worker()}, rig.registry);
  EXPECT_THROW(rig.loop().run(nowhere.start()), UserError);
}

// A server that answers, and then says that it closes, with a close-notify and no FIN as long as nobody
// answers that.
class ClosingPeer {
 public:
  ClosingPeer(const TestCertificate& certificate, Loop& loop) : loop_(loop) {
    tls_ = make_server_tls(certificate.cert(), certificate.key()).value();
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_.get(), 16) != 0) {
      throw std::runtime_error("can't listen");
    }
  }
  [[nodiscard]] std::string url() const {
    return fmt::format("https://127.0.0.1:{}/", local_address(listener_.get()).port());
  }
  // Waits for a connection and answers one request on it.
  std::future<void> answer_next() {
    return std::async(std::launch::async, [this] { answer(); });
  }
  // Begins to close the connection: when it returns, the close-notify is at the other side.
  void begin_to_close() {
    closing_ = std::move(transport_);
    closed_ = loop_.start(closing_->finish());
    loop_.call([] {});
  }
  // Lets go of everything.
  void end() {
    loop_.call([this] {
      transport_->close();
      closing_->close();
    });
    closed_.wait();
  }

 private:
  void answer() {
    Fd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    loop_.call([&] {
      transport_ = make_tls_server_transport(loop_.executor(), std::move(accepted), "127.0.0.1", tls_);
    });
    loop_.run(serve());
  }
  Task<void> serve() {
    co_await transport_->handshake();
    std::string seen;
    std::array<char, 4096> buffer{};
    while (seen.find("\r\n\r\n") == std::string::npos) {
      const auto n = co_await transport_->read_some(buffer);
      if (n == 0) co_return;
      seen.append(buffer.data(), n);
    }
    const std::array<std::string_view, 1> answer{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    co_await transport_->write(answer);
  }

  Loop& loop_;
  TlsContextPtr tls_;
  Fd listener_;
  std::shared_ptr<TlsTransport> transport_;
  std::shared_ptr<TlsTransport> closing_;
  std::future<void> closed_;
};

TEST_F(HttpTls, ConnectionThatThePeerIsClosingCarriesNoRequest) {
  rig.start();
  Loop peers_loop;
  ClosingPeer peer(certificate, peers_loop);
  ClientOptions options;
  options.ca_file = certificate.cert();
  auto client = std::make_unique<HttpClient>(rig.loop().executor(), options);
  const auto ask_peer = [&](std::string method) {
    ClientRequest request;
    request.method = std::move(method);
    request.url = parse_url(peer.url()).value();
    Response response;
    rig.loop().run([](HttpClient& by, ClientRequest what, Response& into) -> Task<void> {
      into = co_await by.send(std::move(what), Deadline::after(kPatience));
    }(*client, std::move(request), response));
    return response.status;
  };
  auto answered = peer.answer_next();
  EXPECT_EQ(ask_peer("GET"), 200);
  answered.get();
  rig.loop().call([&] { EXPECT_EQ(client->idle_connections(), 1U); });
  peer.begin_to_close();
  answered = peer.answer_next();
  EXPECT_EQ(ask_peer("POST"), 200);
  answered.get();
  peer.end();
  rig.loop().call([&] { client.reset(); });
}

}  // namespace
}  // namespace todoke::net::test
