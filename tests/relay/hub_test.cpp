// The hub by itself: who gets which read when, and what is refused. The test plays the connections, and says
// when a page has reached its client; another session locks a table to hold reads up.
#include "relay/hub.hpp"

#include <atomic>
#include <future>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "harness/http_rig.hpp"
#include "harness/metric.hpp"
#include "net/frame.hpp"
#include "nostr/replies.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using net::test::Loop;

// A connection that remembers what it got, and when.
class Peer final : public relay::Subscriber {
 public:
  void deliver(std::vector<net::FramePtr> frames) override {
    for (const auto& frame : frames) remember(std::string(frame->payload()));
  }
  void deliver_page(nostr::SubId, std::vector<relay::LiveEventPtr>, std::string eose) override {
    remember(std::move(eose));
  }
  void deliver_count(nostr::SubId sub, std::uint64_t found) override {
    remember(nostr::count_message(sub, found));
  }

  void all_answered() override {}

  [[nodiscard]] const std::string& network() const override { return network_; }

  [[nodiscard]] std::vector<std::string> got() const {
    const std::lock_guard lock(mutex_);
    return got_;
  }
  [[nodiscard]] bool has(const std::string& start) const { return moment_of(start).has_value(); }
  // Comparable between peers.
  [[nodiscard]] std::optional<int> moment_of(const std::string& start) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < got_.size(); ++i) {
      if (got_[i].starts_with(start)) return moments_[i];
    }
    return std::nullopt;
  }

 private:
  void remember(std::string text) {
    const std::lock_guard lock(mutex_);
    got_.push_back(std::move(text));
    moments_.push_back(next_moment_++);
  }

  static inline std::atomic<int> next_moment_ = 0;
  const std::string network_ = "192.0.2.1";
  mutable std::mutex mutex_;
  std::vector<std::string> got_;
  std::vector<int> moments_;
};
using PeerPtr = std::shared_ptr<Peer>;

constexpr const char* kTooSlow = R"(todoke_query_failed_total{reason="query_too_slow"})";
constexpr const char* kAnsweredOrFailed = "todoke_query_seconds_count";

relay::HubOptions patient_options() {
  relay::HubOptions options;
  options.query_timeout = kPatience;
  return options;
}

// The relay's parts up to the hub, over the database of a whole relay that stores for it.
class HubRig {
 public:
  HubRig(const TestDatabase& database, relay::HubOptions options)
      : pool_({.connect = connect_options(database)}, clock_, registry_),
        listener_(std::make_shared<pg::Listener>(
            loop_.executor(), pg::ListenerOptions{.connect = connect_options(database)}, registry_)),
        metrics_(registry_),
        topics_(std::make_shared<relay::TopicBook>(loop_.executor(), relay::TopicSettings{}, pool_,
                                                   *listener_, registry_)),
        reader_(pool_, clock_, nostr::TopicPolicy::topics, relay::ReadLimits{}, nullptr),
        supervisor_(loop_.executor(), clock_, board_, registry_) {
    options.connect = connect_options(database);
    hub_ = std::make_shared<relay::Hub>(loop_.executor(), reads_.executor(), std::move(options), reader_,
                                        *listener_, *topics_, log_, clock_, metrics_);
    topics_->on_change([this] { hub_->topics_changed(); });
    supervisor_.add(listener_);
    supervisor_.add(topics_);
    supervisor_.add(hub_);
    loop_.run(supervisor_.start());
  }
  ~HubRig() {
    loop_.run(supervisor_.stop());
    pool_.close();
  }
  HubRig(const HubRig&) = delete;
  HubRig& operator=(const HubRig&) = delete;

  relay::Hub& hub() { return *hub_; }
  ShiftedClock& clock() { return clock_; }
  void open(const PeerPtr& peer, const std::string& sub, const std::string& filters) {
    hub_->open(peer, parsed<nostr::ReqMessage>("REQ", sub, filters));
  }
  void count(const PeerPtr& peer, const std::string& sub, const std::string& filters) {
    hub_->count(peer, parsed<nostr::CountMessage>("COUNT", sub, filters));
  }
  // As the writer of this relay does after a commit.
  void append(Event event) {
    loop_.call([&] {
      relay::Appended log;
      log.head_before = std::max(appended_, hub_->head());
      log.head = appended_ = nostr::Seq{log.head_before.value + 1};
      relay::LiveEvent live{std::make_shared<const Event>(std::move(event)), log.head, {}, false, {}};
      hub_->appended(log, {std::make_shared<const relay::LiveEvent>(std::move(live))});
    });
  }
  [[nodiscard]] double metric(const std::string& series) const { return metric_of(registry_, series); }
  [[nodiscard]] bool await_metric(const std::string& series, double value) const {
    return await([&] { return metric(series) == value; });
  }

 private:
  static pg::ConnectOptions connect_options(const TestDatabase& database) {
    pg::ConnectOptions options;
    options.url = database.url();
    return options;
  }
  template <class Message>
  static Message parsed(std::string_view verb, const std::string& sub, const std::string& filters) {
    const auto text = fmt::format(R"(["{}","{}",{}])", verb, sub, filters);
    return std::get<Message>(nostr::parse_client_message(text, {}).value());
  }

  ShiftedClock clock_;
  metrics::Registry registry_;
  HealthBoard board_;
  outbox::LogSignal log_;
  Loop loop_;
  Loop reads_;
  pg::Pool pool_;
  std::shared_ptr<pg::Listener> listener_;
  relay::RelayMetrics metrics_;
  std::shared_ptr<relay::TopicBook> topics_;
  relay::Reader reader_;
  std::shared_ptr<relay::Hub> hub_;
  nostr::Seq appended_;
  Supervisor supervisor_;
};

class HubTest : public testing::Test {
 protected:
  // Holds every read of links up until let_reads_go().
  void hold_reads() {
    blocker.run("BEGIN");
    blocker.run("LOCK TABLE cn_relay.event_topics IN ACCESS EXCLUSIVE MODE");
  }
  void let_reads_go() { blocker.run("ROLLBACK"); }
  // What came first for the REQ. A page has reached its client when this returns.
  static std::string ask(HubRig& rig, const PeerPtr& from, const std::string& sub,
                         const std::string& filters) {
    const auto before = from->got().size();
    rig.open(from, sub, filters);
    wait_until("an answer", [&] { return from->got().size() > before; });
    auto answer = from->got()[before];
    if (answer.starts_with(eose(sub))) rig.hub().page_done(from);
    return answer;
  }
  // A different one for each number, which memory does not answer.
  static std::string asks(int number) {
    return global_and(fmt::format(R"("kinds":[1],"seq_after":{})", number));
  }
  static std::string eose(const std::string& sub) { return fmt::format(R"(["EOSE","{}")", sub); }
  static std::string counted(const std::string& sub) { return fmt::format(R"(["COUNT","{}")", sub); }
  static std::string closed(const std::string& sub, const std::string& text) {
    return fmt::format(R"(["CLOSED","{}","{}"])", sub, text);
  }

  RelayRig storing;
  SqlSession blocker{storing.database()->url()};
  PeerPtr peer = std::make_shared<Peer>();
  PeerPtr other = std::make_shared<Peer>();
  SecretKey alice = SecretKey::generate();
};

TEST_F(HubTest, RequestForATopicThatWasDisabledOnTheWayIsClosed) {
  HubRig rig(*storing.database(), patient_options());
  rig.open(peer, "req", fmt::format(R"({{"#t":["{}"]}})", topic('1')));
  rig.open(peer, "live", fmt::format(R"({{"#t":["{}"],"limit":0}})", topic('1')));
  rig.count(peer, "count", fmt::format(R"({{"#t":["{}"]}},{})", topic('1'), kGlobal));
  ASSERT_TRUE(await([&] { return peer->got().size() == 3; }));
  for (const auto* sub : {"req", "live", "count"})
    EXPECT_TRUE(peer->has(closed(sub, "restricted: topic not enabled"))) << sub;
  EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 0);
  EXPECT_EQ(rig.metric(R"(todoke_req_refused_total{reason="topic_not_enabled"})"), 3);
}

TEST_F(HubTest, TopicThatIsDisabledEndsReadsAndCountsUnderWay) {
  enable_topic(storing, topic('1'));
  HubRig rig(*storing.database(), patient_options());
  const auto filter = fmt::format(R"({{"#t":["{}"]}})", topic('1'));
  hold_reads();
  rig.open(peer, "req", filter);
  rig.count(peer, "count", filter);
  ASSERT_TRUE(rig.await_metric("todoke_reads_under_way", 1));
  storing.sql(
      fmt::format("UPDATE cn_relay.node_subscriptions SET ref_count = 0 WHERE topic_id = '{}'", topic('1')));
  EXPECT_TRUE(await([&] { return peer->has(closed("req", "restricted: topic not enabled")); }));
  let_reads_go();
  EXPECT_TRUE(await([&] { return peer->has(closed("count", "restricted: topic not enabled")); }));
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 0));
  EXPECT_FALSE(peer->has(eose("req")));
}

TEST_F(HubTest, LimitOfZeroReadsNothing) {
  NostrClient client(storing.url());
  const auto before = global_note(alice, "before");
  store_at(client, before);
  HubRig rig(*storing.database(), patient_options());
  hold_reads();
  for (int i = 0; i < 5; ++i) rig.open(peer, fmt::format("slow{}", i), asks(i));
  ASSERT_TRUE(rig.await_metric("todoke_reads_under_way", 4));
  rig.open(peer, "live", global_and(R"("limit":0)") + "," + global_and(R"("limit":0,"kinds":[7])"));
  const auto seq = storing.value("SELECT max(seq) FROM cn_relay.events_outbox");
  EXPECT_TRUE(await([&] { return peer->has(fmt::format(R"(["EOSE","live",["more","seq:{}"]])", seq)); }));
  EXPECT_EQ(rig.metric("todoke_reads_waiting"), 1);
  let_reads_go();
  const auto after = global_note(alice, "after");
  store_at(client, after);
  EXPECT_TRUE(await([&] { return peer->has(fmt::format(R"(["EVENT","live",{}])", after.json())); }));
  EXPECT_FALSE(peer->has(fmt::format(R"(["EVENT","live",{}])", before.json())));
}

TEST_F(HubTest, RequestsThatAreClosedOrReplacedLeaveTheQueueOfReads) {
  HubRig rig(*storing.database(), patient_options());
  hold_reads();
  for (int i = 0; i < 6; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  ASSERT_TRUE(rig.await_metric("todoke_reads_waiting", 2));
  for (int i = 0; i < 500; ++i) {
    rig.open(peer, "replaced", asks(i));
    rig.open(peer, "closed", asks(i));
    rig.hub().close(peer, "closed");
  }
  rig.open(peer, "last", global_and(R"("limit":0)"));
  ASSERT_TRUE(await([&] { return peer->has(eose("last")); }));
  EXPECT_EQ(rig.metric("todoke_reads_waiting"), 3) << "two of the first and the last that was replaced";
  rig.hub().leave(peer);
  EXPECT_TRUE(rig.await_metric("todoke_reads_waiting", 0));
  EXPECT_TRUE(rig.await_metric("todoke_ws_subscriptions", 0));
  EXPECT_TRUE(rig.await_metric("todoke_filter_bytes", 0));
  let_reads_go();
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 0));
}

TEST_F(HubTest, ReadsOfTheProcessAreBoundedAndConnectionsTakeTurns) {
  auto options = patient_options();
  options.reads_under_way_max = 1;
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  for (int i = 0; i < 4; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  rig.open(other, "s", asks(9));
  ASSERT_TRUE(rig.await_metric("todoke_reads_waiting", 4));
  EXPECT_EQ(rig.metric("todoke_reads_under_way"), 1);
  let_reads_go();
  ASSERT_TRUE(await([&] { return other->has(eose("s")) && peer->got().size() == 4; }));
  EXPECT_LT(other->moment_of(eose("s")), peer->moment_of(eose("s2"))) << "the busy one had two before it";
}

TEST_F(HubTest, TellsWhenItHasTakenWhatWasAsked) {
  HubRig rig(*storing.database(), patient_options());
  rig.open(peer, "s", asks(1));
  double taken = 0;
  std::promise<void> told;
  rig.hub().when_taken([&] {
    taken = rig.metric("todoke_ws_subscriptions");
    told.set_value();
  });
  told.get_future().wait();
  EXPECT_EQ(taken, 1);
}

TEST_F(HubTest, RequestForWhichTheLineIsTooLongIsTold) {
  auto options = patient_options();
  options.reads_under_way_max = 1;
  options.query_timeout = std::chrono::milliseconds(500);
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  for (int i = 0; i < 3; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  for (int i = 0; i < 3; ++i) rig.open(other, fmt::format("s{}", i), asks(i));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(await([&] { return peer->has(closed(fmt::format("s{}", i), "error: query too slow")); }));
    EXPECT_TRUE(await([&] { return other->has(closed(fmt::format("s{}", i), "error: query too slow")); }));
  }
  let_reads_go();
  EXPECT_EQ(rig.metric("todoke_reads_waiting"), 0);
  EXPECT_EQ(rig.metric(kTooSlow), 6);
  EXPECT_EQ(rig.metric(kAnsweredOrFailed), 6);
}

TEST_F(HubTest, TimeInLineCountsFromTheRequestWhateverStandsBeforeIt) {
  auto options = patient_options();
  options.reads_under_way_max = 1;
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  for (int i = 0; i < 4; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  ASSERT_TRUE(rig.await_metric("todoke_reads_waiting", 3));
  rig.clock().shift_steady(kPatience + std::chrono::seconds(1));
  let_reads_go();
  ASSERT_TRUE(await([&] { return peer->got().size() == 4; }));
  EXPECT_TRUE(peer->has(eose("s0"))) << "it was being read";
  for (int i = 1; i < 4; ++i)
    EXPECT_TRUE(peer->has(closed(fmt::format("s{}", i), "error: query too slow"))) << i;
}

TEST_F(HubTest, TimeInWhichTheClientTakesNoPagesIsNotTimeInLine) {
  HubRig rig(*storing.database(), patient_options());
  for (int i = 0; i < 5; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  ASSERT_TRUE(await([&] { return peer->got().size() == 4; }));
  rig.clock().shift_steady(kPatience + std::chrono::seconds(1));
  rig.hub().page_done(peer);
  EXPECT_TRUE(await([&] { return peer->has(eose("s4")); }));
}

TEST_F(HubTest, RequestForWhichTooManyLiveEventsWaitIsTold) {
  auto options = patient_options();
  options.waiting_max = 2;
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  rig.open(peer, "s", asks(0));
  ASSERT_TRUE(rig.await_metric("todoke_reads_under_way", 1));
  for (int i = 0; i < 3; ++i) rig.append(global_note(alice, std::to_string(i)));
  EXPECT_TRUE(await([&] { return peer->has(closed("s", "error: query too slow")); }));
  EXPECT_EQ(rig.metric(kAnsweredOrFailed), 1);
  let_reads_go();
  EXPECT_EQ(rig.metric(kTooSlow), 1);
}

TEST_F(HubTest, CountsOfTheProcessAreBoundedAndConnectionsTakeTurns) {
  auto options = patient_options();
  options.counts_under_way_max = 1;
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  for (int i = 0; i < 4; ++i) rig.count(peer, fmt::format("c{}", i), kGlobal);
  rig.count(other, "c", kGlobal);
  ASSERT_TRUE(rig.await_metric("todoke_counts_waiting", 4));
  EXPECT_EQ(rig.metric("todoke_counts_under_way"), 1);
  rig.open(other, "req", asks(0));
  EXPECT_TRUE(rig.await_metric("todoke_reads_under_way", 1)) << "COUNTs take no place of a REQ";
  let_reads_go();
  ASSERT_TRUE(await([&] { return other->has(counted("c")) && peer->got().size() == 4; }));
  EXPECT_LT(other->moment_of(counted("c")), peer->moment_of(counted("c2"))) << "the busy one had two before";
  EXPECT_TRUE(rig.await_metric("todoke_counts_under_way", 0));
}

TEST_F(HubTest, CountForWhichTheLineIsTooLongIsToldAndThoseOfOneWhoLeftAreForgotten) {
  auto options = patient_options();
  options.counts_under_way_max = 1;
  options.query_timeout = std::chrono::milliseconds(500);
  HubRig rig(*storing.database(), std::move(options));
  hold_reads();
  for (int i = 0; i < 3; ++i) rig.count(peer, fmt::format("c{}", i), kGlobal);
  for (int i = 0; i < 3; ++i) rig.count(other, fmt::format("c{}", i), kGlobal);
  rig.hub().leave(other);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(await([&] { return peer->has(closed(fmt::format("c{}", i), "error: query too slow")); }));
  EXPECT_TRUE(rig.await_metric("todoke_counts_under_way", 0));
  EXPECT_EQ(rig.metric("todoke_counts_waiting"), 0);
  EXPECT_EQ(rig.metric("todoke_filter_bytes"), 0);
  EXPECT_EQ(rig.metric(kTooSlow), 3);
  EXPECT_EQ(rig.metric(kAnsweredOrFailed), 3);
  let_reads_go();
}

TEST_F(HubTest, PagesThatTheClientHasNotTakenHoldItsNextReadsUpAndNobodyElses) {
  HubRig rig(*storing.database(), patient_options());
  for (int i = 0; i < 6; ++i) rig.open(peer, fmt::format("s{}", i), asks(i));
  ASSERT_TRUE(await([&] { return peer->got().size() == 4; }));
  rig.open(other, "s", asks(0));
  ASSERT_TRUE(await([&] { return other->has(eose("s")); }));
  EXPECT_EQ(peer->got().size(), 4U);
  rig.hub().page_done(peer);
  EXPECT_TRUE(await([&] { return peer->has(eose("s4")); }));
  EXPECT_FALSE(peer->has(eose("s5")));
  rig.hub().page_done(peer);
  EXPECT_TRUE(await([&] { return peer->has(eose("s5")); }));
}

TEST_F(HubTest, SlowReadsDontHoldUpWhatMemoryAnswers) {
  HubRig rig(*storing.database(), patient_options());
  ASSERT_TRUE(await([&] {
    ask(rig, other, "fill", kGlobal);
    return rig.metric("todoke_query_memory_total") > 0;
  }));
  hold_reads();
  for (int i = 0; i < 5; ++i) rig.open(peer, fmt::format("slow{}", i), asks(i));
  ASSERT_TRUE(rig.await_metric("todoke_reads_under_way", 4));
  rig.open(peer, "quick", kGlobal);
  EXPECT_TRUE(await([&] { return peer->has(eose("quick")); }));
  EXPECT_EQ(peer->got().size(), 1U);
  let_reads_go();
}

TEST_F(HubTest, FiltersOfAConnectionAndOfTheProcessHaveABudget) {
  std::string values;
  for (int i = 0; i < 100; ++i) values += fmt::format(R"({}"{}")", i == 0 ? "" : ",", i);
  const auto large = global_and(fmt::format(R"("#x":[{}])", values));
  const auto bytes =
      static_cast<double>(relay::memory_of(std::vector{nostr::parse_filter(large, {}).value()}));
  auto options = patient_options();
  options.filter_bytes_max = static_cast<std::size_t>(2.5 * bytes);
  options.filter_bytes_in_all_max = static_cast<std::size_t>(3.5 * bytes);
  HubRig rig(*storing.database(), std::move(options));
  const auto open = [&](const PeerPtr& to, const std::string& sub) { return ask(rig, to, sub, large); };
  const auto too_large = "restricted: filters of open subscriptions too large";
  EXPECT_THAT(open(peer, "a"), StartsWith(eose("a")));
  EXPECT_THAT(open(peer, "b"), StartsWith(eose("b")));
  EXPECT_EQ(rig.metric("todoke_filter_bytes"), 2 * bytes);
  EXPECT_EQ(open(peer, "c"), closed("c", too_large));
  rig.count(peer, "count", large);
  EXPECT_TRUE(await([&] { return peer->has(closed("count", too_large)); }));
  EXPECT_THAT(open(peer, "b"), StartsWith(eose("b"))) << "it takes its own place";
  EXPECT_THAT(open(other, "a"), StartsWith(eose("a")));
  EXPECT_EQ(open(other, "b"), closed("b", "restricted: capacity"));
  rig.hub().leave(peer);
  EXPECT_THAT(open(other, "b"), StartsWith(eose("b")));
  rig.hub().leave(other);
  EXPECT_TRUE(rig.await_metric("todoke_filter_bytes", 0));
  EXPECT_EQ(rig.metric(R"(todoke_req_refused_total{reason="filters_too_large"})"), 2);
  EXPECT_EQ(rig.metric(R"(todoke_req_refused_total{reason="capacity"})"), 1);
}

}  // namespace
}  // namespace todoke::test
