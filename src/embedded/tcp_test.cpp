#include "embedded/tcp.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.hpp"

namespace todoke::embedded {
namespace {

using testing::HasSubstr;

Options config_with(std::string listen, std::string cert = {}, std::string key = {}) {
  Options config;
  config.listen = std::move(listen);
  config.tls_cert = std::move(cert);
  config.tls_key = std::move(key);
  return config;
}

std::optional<Tcp> open_tcp(bool tls) {
  return Tcp{{"127.0.0.1", 5433}, tls ? "/cert.pem" : "", tls ? "/key.pem" : ""};
}

TEST(Tcp, IsClosedUnlessAnAddressIsGiven) {
  const auto tcp = tcp_of(config_with(""));
  ASSERT_TRUE(tcp);
  EXPECT_FALSE(*tcp);
  EXPECT_EQ(tcp_settings(*tcp), "listen_addresses = ''\n");
}

TEST(Tcp, AnAddressIsAHostAndAPort) {
  const auto v4 = tcp_address("127.0.0.1:5433", "log.listen");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 5433);
  EXPECT_EQ(tcp_address("[::1]:1", "k")->host, "::1");
  EXPECT_EQ(tcp_address("*:65535", "k")->host, "*");
  for (const auto* wrong : {"", "5433", "host", ":5433", "::1:5433", "a b:1", "h:x", "h:65536", "h:-1",
                            "h:1x", "a,b:1", "h';x:1", "[]:1"}) {
    EXPECT_FALSE(tcp_address(wrong, "log.listen")) << wrong;
  }
  EXPECT_THAT(tcp_address("127.0.0.1:0", "log.listen").error().message, HasSubstr("log.listen: name a port"));
}

TEST(Tcp, CertificateAndKeyBelongTogetherAndToAnAddress) {
  EXPECT_FALSE(tcp_of(config_with("h:1", "cert")));
  EXPECT_FALSE(tcp_of(config_with("h:1", "", "key")));
  EXPECT_FALSE(tcp_of(config_with("", "cert", "key")));
  EXPECT_TRUE(tcp_of(config_with("h:1", "cert", "key")));
  EXPECT_THROW(read_tls_files({{"h", 1}, "/no/such/file", "/no/such/file"}), UserError);
}

TEST(Tcp, TlsIsInTheSettingsOnlyWithACertificate) {
  EXPECT_THAT(tcp_settings(open_tcp(true)), HasSubstr("ssl = on\n"));
  EXPECT_THAT(tcp_settings(open_tcp(false)), testing::Not(HasSubstr("ssl")));
  EXPECT_THAT(tcp_settings(open_tcp(false)), HasSubstr("listen_addresses = '127.0.0.1'\n"));
}

TEST(Tcp, HostRulesComeFirstAndGoAgain) {
  const std::string before = "# mine\nlocal all all peer\nhost all all all scram-sha-256\n";
  const auto open = with_host_rules(before, open_tcp(false));
  EXPECT_TRUE(open.starts_with("# todoke: begin"));
  EXPECT_TRUE(open.ends_with(before));
  EXPECT_THAT(open, HasSubstr("\nhost    todoke  +todoke_consumers  all  scram-sha-256\n"
                              "host    all     all                all  reject\n"));
  EXPECT_EQ(with_host_rules(open, open_tcp(false)), open) << "a second start changes nothing";
  EXPECT_EQ(with_host_rules(open, std::nullopt), before);
  EXPECT_THAT(with_host_rules(open, open_tcp(true)), HasSubstr("\nhostssl todoke  +todoke_consumers"));
}

TEST(Tcp, HostRulesStayBelowWhatSomebodyPutAboveThem) {
  const auto rules = with_host_rules("", open_tcp(false));
  const auto mine = "host all me 10.0.0.1/32 scram-sha-256\n" + rules + "local all all peer\n";
  EXPECT_EQ(with_host_rules(mine, open_tcp(false)), mine);
  EXPECT_EQ(with_host_rules(mine, std::nullopt),
            "host all me 10.0.0.1/32 scram-sha-256\nlocal all all peer\n");
}

TEST(Tcp, HostRulesWithoutTheirEndLoseNoLineOfOthers) {
  const std::string cut = "# todoke: begin\nlocal all all peer";
  EXPECT_EQ(with_host_rules(cut, std::nullopt), "local all all peer");
}

TEST(Tcp, APortInUseIsToldBeforePostgresStarts) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  try {
    check_address_free({"127.0.0.1", ntohs(address.sin_port)});
    FAIL() << "the port is in use";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("log.listen: can't listen on 127.0.0.1:"));
  }
}

}  // namespace
}  // namespace todoke::embedded
