#include "app/node_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/data_folder.hpp"
#include "app/keys.hpp"
#include "app/node.hpp"
#include "orders/worker/config.hpp"

namespace todoke::app {
namespace {

TEST(NodeOptionsTest, OnlyThePublicListenerHasTlsAndTrustsProxies) {
  Config config(schema());
  config.set_flag("server.tls_cert", "/cert.pem");
  config.set_flag("server.trusted_proxies", "10.0.0.1");
  EXPECT_EQ(public_server_config(config).tls_cert, "/cert.pem");
  EXPECT_FALSE(public_server_config(config).trusted_proxies.empty());
  EXPECT_EQ(internal_server_config(config).tls_cert, "");
  EXPECT_TRUE(internal_server_config(config).trusted_proxies.empty());
}

TEST(NodeOptionsTest, ARelayThatSearchesNeedsTheIndex) {
  Config config(schema());
  config.set_flag("relay.search", "on");
  const auto needed = monitor_options(config, true).needed;
  ASSERT_EQ(needed.size(), 1U);
  EXPECT_EQ(needed[0].name, "index-v1");
  EXPECT_EQ(needed[0].role, "index");
  EXPECT_TRUE(monitor_options(config, false).needed.empty());
  config.set_flag("relay.search", "off");
  EXPECT_TRUE(monitor_options(config, true).needed.empty());
}

TEST(NodeOptionsTest, AConnectionNeedsAFile) {
  Config config(schema());
  config.set_flag("server.connections_max", "1000");
  const auto wanted = open_files_wanted(config);
  config.set_flag("server.connections_max", "1001");
  EXPECT_EQ(open_files_wanted(config), wanted + 1);
  EXPECT_GT(wanted, 1'000U);
}

TEST(NodeOptionsTest, UpSendsOrdersUnlessTheOperatorSaysOtherwise) {
  Config config(schema());
  EXPECT_FALSE(config.get(orders::keys::kEnabled));
  EXPECT_TRUE(config_of_up(config).get(orders::keys::kEnabled));
  config.set_flag("outbox.enabled", "false");
  EXPECT_FALSE(config_of_up(config).get(orders::keys::kEnabled));
}

TEST(DataFolderTest, AConfiguredFolderBecomesAnAbsolutePath) {
  Config config(schema());
  config.set_flag("data_dir", "/var/../srv/todoke");
  EXPECT_EQ(data_folder(config), "/srv/todoke");
  config.set_flag("data_dir", "here");
  EXPECT_EQ(data_folder(config), std::filesystem::current_path() / "here");
}

}  // namespace
}  // namespace todoke::app
