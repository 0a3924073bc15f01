// What the node says of itself: its keys, its descriptor, the services of its topics, and who reads them.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/data_folder.hpp"
#include "base/clock.hpp"
#include "bootstrap/directory.hpp"
#include "bootstrap/node_keys.hpp"
#include "harness/run_task.hpp"
#include "harness/todoke_process.hpp"
#include "nostr/event_parse.hpp"
#include "pg/pool.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using testing::SizeIs;

class BootstrapTest : public testing::Test {
 protected:
  [[nodiscard]] Flags flags() const {
    return {{"bootstrap.enabled", "on"}, {"data_dir", folder.path().string()}};
  }
  [[nodiscard]] std::filesystem::path key_file() const { return folder.path() / "node.key"; }
  [[nodiscard]] std::string node_key() const {
    return bootstrap::read_keys(key_file()).value().node().pubkey().hex();
  }
  static std::string by(const std::string& author, int kind) {
    return fmt::format(R"({{"authors":["{}"],"kinds":[{}]}})", author, kind);
  }
  // The ids of what an author has in effect, when there are so many.
  Ids await_ids(RelayRig& node, const std::string& author, int kind, std::size_t count) {
    NostrClient client(node.url());
    Ids ids;
    EXPECT_TRUE(await([&] {
      ids = client.stored(by(author, kind)).ids;
      return ids.size() == count;
    })) << kind;
    return ids;
  }
  Exit key(std::vector<std::string> words) {
    words.insert(words.begin(), {todoke_binary(), "key"});
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words, {"DATABASE_URL=" + database->url()});
  }
  void take(RelayRig& node, const std::string& topic_id, bool takes) {
    node.sql(
        fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count) VALUES ('{0}', {1}) "
                    "ON CONFLICT (topic_id) DO UPDATE SET ref_count = {1}",
                    topic_id, takes ? 1 : 0));
  }
  // Runs `ask` with a directory of the database.
  template <class Ask>
  auto directory(Ask ask) {
    const SystemClock clock;
    metrics::Registry registry;
    pg::PoolOptions options;
    options.connect.url = database->url();
    options.connections_max = 1;
    pg::Pool pool(options, clock, registry);
    bootstrap::Directory asked(pool);
    auto found = run_task([&] { return ask(asked); });
    pool.close();
    return found;
  }
  static Deadline soon() { return Deadline::after(kPatience); }

  DatabasePtr database = std::make_shared<TestDatabase>();
  TempFolder folder;
};

TEST_F(BootstrapTest, ANodeSignsWhatItIsAndClientsFindItByItsKey) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  await_ids(rig, author, 39000, 1);
  await_ids(rig, author, 39001, 1);  // of kukuri:global
  NostrClient client(rig.url());
  const auto json = client.stored(by(author, 39000)).events.at(0);
  const auto event = nostr::parse_event(json, {}).value();
  EXPECT_TRUE(nostr::has_right_signature(event));
  EXPECT_EQ(event.first_value("d"), "descriptor");
  EXPECT_EQ(event.first_value("k"), "kukuri");
  // In its topic too, for other nodes.
  EXPECT_THAT(client.stored(global_and(R"("kinds":[39000])")).ids, ElementsAre(event.id().hex()));
  EXPECT_EQ(rig.value("SELECT string_agg(algorithm, ',' ORDER BY algorithm) FROM cn_bootstrap.keys "
                      "WHERE withdrawn_at IS NULL"),
            "communication-density,labels,node,report-based");
  EXPECT_EQ(rig.value("SELECT pubkey FROM cn_bootstrap.keys WHERE algorithm = 'node'"), author);
  EXPECT_EQ(std::filesystem::status(key_file()).permissions(), std::filesystem::perms(0600));
}

TEST_F(BootstrapTest, ATopicThatIsTakenHasItsServicesAndLosesThemWithIt) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  await_ids(rig, author, 39001, 1);
  take(rig, topic('a'), true);
  await_ids(rig, author, 39001, 2);
  NostrClient client(rig.url());
  EXPECT_TRUE(await([&] {
    return client.stored(fmt::format(R"({{"#t":["{}"],"kinds":[39001]}})", topic('a'))).ids.size() == 1;
  }));
  take(rig, topic('a'), false);
  await_ids(rig, author, 39001, 1);
}

TEST_F(BootstrapTest, NothingIsSignedAgainWithoutAReason) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  const auto descriptor = await_ids(rig, author, 39000, 1);
  const auto services = await_ids(rig, author, 39001, 1);
  rig.stop();
  rig.start();
  // A round has passed when a new topic has its service.
  take(rig, topic('a'), true);
  auto after = await_ids(rig, author, 39001, 2);
  EXPECT_EQ(await_ids(rig, author, 39000, 1), descriptor);
  EXPECT_THAT(after, testing::Contains(services.front()));
  // Half of its life later everything is.
  rig.clock().shift(std::chrono::hours(24 * 4));
  take(rig, topic('b'), true);
  EXPECT_TRUE(await([&] { return await_ids(rig, author, 39000, 1) != descriptor; }));
  after = await_ids(rig, author, 39001, 3);
  EXPECT_THAT(after, testing::Not(testing::Contains(services.front())));
}

TEST_F(BootstrapTest, AChangeOfTheConfigurationIsSignedAtOnce) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  await_ids(rig, author, 39000, 1);
  rig.change({{"bootstrap.jurisdiction", "JP"}});
  NostrClient client(rig.url());
  EXPECT_TRUE(await([&] {
    const auto found = client.stored(by(author, 39000)).events;
    return found.size() == 1 && found[0].find(R"(\"jurisdiction\":\"JP\")") != std::string::npos;
  }));
}

TEST_F(BootstrapTest, OfSeveralProcessesOneSigns) {
  RelayRig first(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  const auto descriptor = await_ids(first, author, 39000, 1);
  auto other_name = flags();
  other_name.emplace_back("bootstrap.jurisdiction", "elsewhere");
  RelayRig second(NodeRigOptions{.roles = {}, .flags = other_name, .database = database});
  take(first, topic('a'), true);
  await_ids(second, author, 39001, 2);
  EXPECT_EQ(await_ids(first, author, 39000, 1), descriptor);
  EXPECT_EQ(second.metric(R"(todoke_bootstrap_published_total{outcome="stored"})"), 0);
}

TEST_F(BootstrapTest, ARotationSignsAnewAndWithdrawsWhatTheOldKeysSigned) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto before = node_key();
  await_ids(rig, before, 39000, 1);
  await_ids(rig, before, 39001, 1);
  const auto rotated = key({"rotate"});
  EXPECT_EQ(rotated.code, 0) << rotated.err;
  const auto after = node_key();
  EXPECT_NE(after, before);
  await_ids(rig, after, 39000, 1);
  await_ids(rig, after, 39001, 1);
  await_ids(rig, before, 39000, 0);
  await_ids(rig, before, 39001, 0);
  EXPECT_TRUE(await([&] { return !std::filesystem::exists(folder.path() / "node.key.old"); }));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_bootstrap.keys WHERE withdrawn_at IS NOT NULL"), "4");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_bootstrap.keys WHERE withdrawn_at IS NULL"), "4");
  const auto shown = key({"show", "--json"});
  EXPECT_EQ(shown.out, bootstrap::keys_json(bootstrap::read_keys(key_file()).value()) + "\n");
}

TEST_F(BootstrapTest, ARotationWithoutANodeIsCarriedOutAtTheNextStart) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto before = node_key();
  await_ids(rig, before, 39000, 1);
  rig.stop();
  // Cut off before the database was told.
  bootstrap::rotate_keys(key_file());
  rig.start();
  await_ids(rig, node_key(), 39000, 1);
  await_ids(rig, before, 39000, 0);
}

TEST_F(BootstrapTest, AFileWithOtherKeysStopsTheStart) {
  {
    const RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  }
  std::filesystem::remove(key_file());
  try {
    const RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
    FAIL() << "it starts";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("todoke key rotate --adopt"));
  }
  const auto adopted = key({"rotate", "--adopt"});
  EXPECT_EQ(adopted.code, 0) << adopted.err;
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  await_ids(rig, node_key(), 39000, 1);
}

TEST_F(BootstrapTest, KeysAreShownOnlyAfterTheFirstStart) {
  const auto none = key({"show"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("makes it at its first start"));
  EXPECT_EQ(key({"show", "--adopt"}).code, 2);
  EXPECT_EQ(key({"hide"}).code, 2);
}

TEST_F(BootstrapTest, TheDirectoryHasWhatIsInEffectAndWhatIsNew) {
  EXPECT_THAT(directory([](auto& d) { return d.nodes(soon()); }), IsEmpty());
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = flags(), .database = database});
  const auto author = node_key();
  const auto descriptor = await_ids(rig, author, 39000, 1);
  const auto services = await_ids(rig, author, 39001, 1);
  const auto nodes = directory([](auto& d) { return d.nodes(soon()); });
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_EQ(nodes[0].id, descriptor.front());
  EXPECT_TRUE(nostr::has_right_signature(nostr::parse_event(nodes[0].json, {}).value()));
  const auto of_global = directory([](auto& d) { return d.topic_services("kukuri:global", soon()); });
  ASSERT_THAT(of_global, SizeIs(1));
  EXPECT_EQ(of_global[0].id, services.front());
  EXPECT_THAT(directory([](auto& d) { return d.topic_services("kukuri:globa", soon()); }), IsEmpty());
  EXPECT_THAT(directory([](auto& d) { return d.topic_services(topic('a'), soon()); }), IsEmpty());
  const auto hints_after = [&](std::int64_t since) {
    return directory([since](auto& d) { return d.hints_after(since, 100, soon()); });
  };
  EXPECT_TRUE(await([&] { return hints_after(0).events.size() == 2; }));
  const auto first = hints_after(0);
  EXPECT_THAT(hints_after(first.last).events, IsEmpty());
  EXPECT_EQ(hints_after(first.last).last, first.last);
  take(rig, topic('a'), true);
  EXPECT_TRUE(await([&] { return hints_after(first.last).events.size() == 1; }));
  EXPECT_THAT(hints_after(first.last).events[0].json, HasSubstr(topic('a')));
}

TEST_F(BootstrapTest, SwitchedOffANodeHasNoKeyAndSignsNothing) {
  const RelayRig rig(Flags{{"bootstrap.enabled", "off"}, {"data_dir", folder.path().string()}});
  EXPECT_FALSE(std::filesystem::exists(key_file()));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_bootstrap.keys"), "0");
}

}  // namespace
}  // namespace todoke::test
