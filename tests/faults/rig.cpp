#include "faults/rig.hpp"

#include <gtest/gtest.h>

namespace todoke::test {
namespace {

std::vector<std::string> with_defaults(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--limits.rates", "off"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

RelayProcess::RelayProcess(const std::filesystem::path& data_dir, const std::vector<std::string>& more,
                           const std::vector<std::string>& environment)
    : TodokeUp(data_dir, with_defaults(more), environment) {
  wait_ready();
}

void expect_serves(RelayProcess& relay) {
  const auto key = nostr::SecretKey::generate();
  const auto event = note(key, "does it serve?");
  NostrClient client(relay.url());
  wait_until("an OK true", [&] { return client.publish(event).accepted; });
  const auto answer =
      client.request("all", R"({"#t":["kukuri:global"],"authors":[")" + key.pubkey().hex() + R"("]})");
  EXPECT_EQ(answer.ids, std::vector{event.id().hex()}) << answer.end;
}

}  // namespace todoke::test
