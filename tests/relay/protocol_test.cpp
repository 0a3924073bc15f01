// Messages as such: what is understood, what is answered to what is not, subscription ids.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class ProtocolTest : public TopicsTest {
 protected:
  std::string answer_to(const std::string& message) {
    client.send(message);
    return client.receive();
  }
};

TEST_F(ProtocolTest, sends_a_challenge_first_and_a_different_one_to_everybody) {
  NostrClient other(rig.url());
  EXPECT_EQ(client.challenge().size(), 32U);
  EXPECT_NE(client.challenge(), other.challenge());
}

TEST_F(ProtocolTest, serves_at_the_root_and_at_relay) {
  NostrClient at_root(rig.url("/"));
  const auto event = global_note(alice, "hello");
  test::store(at_root, event);
  EXPECT_THAT(client.request("s", by_id(event)).ids, ElementsAre(hex_of(event)));
}
}  // namespace
}  // namespace todoke::test
