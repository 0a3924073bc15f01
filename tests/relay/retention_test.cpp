// What goes when, and what a client and a reader of the tables see of it.
#include "relay/retention.hpp"

#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "harness/todoke_process.hpp"
#include "index/sweeper.hpp"
#include "outbox/audit.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using relay::RetentionPeriods;
using relay::RetentionTotals;
using testing::UnorderedElementsAre;

Deadline soon_enough() {
  return Deadline::after(std::chrono::seconds(30));
}

// Time passes for everything that is stored, in partitions of the past.
void let_days_pass(const RelayRig& rig, int days) {
  rig.sql(fmt::format(
      R"(SELECT cn_relay.ensure_week(w.week) FROM (
           SELECT DISTINCT cn_relay.week_of(ingested_at - interval '{0} days') AS week FROM cn_relay.events) w;
         UPDATE cn_relay.events SET ingested_at = ingested_at - interval '{0} days',
           deleted_at = deleted_at - interval '{0} days', superseded_at = superseded_at - interval '{0} days',
           expired_at = expired_at - interval '{0} days';
         UPDATE cn_relay.topic_links SET ingested_at = ingested_at - interval '{0} days';
         UPDATE cn_relay.event_tags SET ingested_at = ingested_at - interval '{0} days';
         UPDATE cn_relay.current_versions SET ingested_at = ingested_at - interval '{0} days';
         UPDATE cn_relay.event_dedupe SET first_seen_at = first_seen_at - interval '{0} days',
           last_seen_at = last_seen_at - interval '{0} days';
         UPDATE cn_relay.deletion_tombstones SET requested_at = requested_at - interval '{0} days';
         UPDATE cn_relay.events_outbox SET ingested_at = ingested_at - interval '{0} days';
         UPDATE cn_search.post_search_documents SET ingested_at = ingested_at - interval '{0} days';
         SELECT cn_relay.recount_usage())",
      days));
}

// Six hundred events that have to move out of two weeks, and as many that go with them.
void fill_two_weeks(const RelayRig& rig) {
  rig.sql(fmt::format(
      R"(SELECT cn_relay.ensure_week(now() - interval '45 days'), cn_relay.ensure_week(now() - interval '52 days');
         CREATE TEMP TABLE n AS SELECT i, lpad(to_hex(i), 64, '0') AS id, now() - make_interval(days => 45 + 7 * (i % 2)) AS at,
           CASE WHEN i % 4 < 2 THEN '{}' ELSE '{}' END AS topic_id FROM generate_series(1, 1200) i;
         INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq,
           source, topics) SELECT id, 'p', 1, i, '[["p","x"]]', '', 's', at, i, 'ws', ARRAY[topic_id] FROM n;
         INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, ingested_at, ingested_seq)
           SELECT cn_relay.topic_no(topic_id), decode(id, 'hex'), cn_relay.short_id(id), 0, 1, i, at, i FROM n;
         INSERT INTO cn_relay.event_tags (name, value, created_at, event_id, ingested_at) SELECT 'p', 'x', i, id, at FROM n;
         INSERT INTO cn_relay.event_dedupe (event_id) SELECT id FROM n;
         SELECT cn_relay.recount_usage())",
      topic('1'), topic('2')));
}

class RetentionOfEvents : public TopicsTest {
 protected:
  RetentionOfEvents() {
    for (const char digit : {'1', '2', '3'}) enable_topic(rig, topic(digit));
  }

  RetentionTotals run(RetentionPeriods periods = {}, std::chrono::milliseconds lock_wait = kPatience) {
    const auto totals = run_task([&]() -> Task<std::optional<RetentionTotals>> {
      const auto connection = co_await rig.database()->connect();
      relay::RetentionSteps steps;
      steps.periods = periods;
      steps.at = SystemClock().now();
      steps.lock_wait = lock_wait;
      co_return co_await relay::run_retention(*connection, std::move(steps));
    });
    if (!totals) throw std::runtime_error("somebody else has the purge lock");
    EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0") << "topic_usage is not what is stored";
    return *totals;
  }
  // One round, of turns of so many steps.
  relay::RetentionRound round_of(int steps_of_turn, std::chrono::seconds clock_shift = {}) {
    return run_task([&]() -> Task<relay::RetentionRound> {
      const auto connection = co_await rig.database()->connect();
      relay::RetentionSteps steps;
      steps.at = SystemClock().now() + clock_shift;
      steps.steps_of_turn = steps_of_turn;
      co_return co_await relay::retention_round(*connection, std::move(steps));
    });
  }
  // Regular events that are kept longer, accepted so many days ago.
  void fill_kept(const std::string& topic_id, int first, int count, int days) {
    rig.sql(fmt::format(
        R"(INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq,
             source, topics, lifetime)
           SELECT lpad(to_hex(i), 64, '0'), 'p', 1, i, '[]', '', 's', now() - make_interval(days => {}, secs => i), i, 'ws', ARRAY['{}'], 'k'
           FROM generate_series({}, {}) i;
           SELECT cn_relay.recount_usage())",
        days, topic_id, first, first + count - 1));
  }
  std::map<std::string, std::int64_t> plan(RetentionPeriods periods = {}) {
    const auto lines = run_task([&]() -> Task<std::vector<relay::PlanLine>> {
      const auto connection = co_await rig.database()->connect();
      co_return co_await relay::plan_retention(*connection, periods, SystemClock().now(), soon_enough());
    });
    std::map<std::string, std::int64_t> rows;
    for (const auto& line : lines) {
      rows[line.what] += line.rows;
      rows["moved"] += line.moved;
    }
    return rows;
  }
  void set_policy(const std::string& topic_id, const std::string& policy) {
    rig.sql(fmt::format("UPDATE cn_relay.node_subscriptions SET ingest_policy = '{}' WHERE topic_id = '{}'",
                        policy, topic_id));
  }
  Event note_in(const Tags& topics, const std::string& content = "") {
    ++count_;
    return note(alice, content.empty() ? std::to_string(count_) : content, topics, 1, kTime + count_);
  }
  static Tags in(const std::string& topics) {
    Tags tags;
    for (const char digit : topics) tags.push_back({"t", topic(digit)});
    return tags;
  }
  Ids ids_in(char digit) {
    NostrClient reader(rig.url());
    return reader.stored(fmt::format(R"({{"#t":["{}"]}})", topic(digit))).ids;
  }
  [[nodiscard]] bool is_stored(const Event& event) const {
    return rig.value(fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'",
                                 hex_of(event))) == "1";
  }
  [[nodiscard]] std::string lifetime(const Event& event) const {
    return rig.value(fmt::format(
        "SELECT string_agg(lifetime::text, '') FROM cn_relay.events WHERE event_id = '{}'", hex_of(event)));
  }
  [[nodiscard]] std::string rows(const std::string& table, const std::string& condition = "true") const {
    return rig.value(fmt::format("SELECT count(*) FROM cn_relay.{} WHERE {}", table, condition));
  }

 private:
  int count_ = 0;
};

TEST_F(RetentionOfEvents, ARegularEventGoesWithItsWeekAndNothingOfItStandsInTheLog) {
  store(note_in(in("1"), "gone"));
  const auto log = rig.sql("SELECT * FROM cn_relay.events_outbox WHERE op = 'delete'");
  let_days_pass(rig, 38);
  const auto totals = run();
  EXPECT_EQ(totals.weeks, 1);
  EXPECT_EQ(totals.week_events, 1);
  EXPECT_EQ(rows("events"), "0");
  EXPECT_EQ(rows("event_topics"), "0");
  EXPECT_EQ(rows("event_tags"), "0");
  EXPECT_EQ(rows("topic_usage", "events <> 0 OR bytes <> 0"), "0");
  EXPECT_EQ(rig.sql("SELECT * FROM cn_relay.events_outbox WHERE op = 'delete'"), log);
  EXPECT_EQ(
      rig.value(
          "SELECT count(*) FROM pg_class WHERE relnamespace = 'cn_relay'::regnamespace AND relkind = 'r' "
          "AND relname ~ '_[0-9]{4}_[0-9]{2}_[0-9]{2}$' AND NOT relispartition"),
      "0")
      << "a table was taken out and not dropped";
}

TEST_F(RetentionOfEvents, AWeekStaysUntilItsLastEventIsPastThePeriod) {
  store(note_in(in("1")));
  let_days_pass(rig, 29);
  EXPECT_EQ(run().weeks, 0);
  EXPECT_EQ(ids_in('1').size(), 1U);
  EXPECT_EQ(run({.regular = 7}).weeks, 1);
}

TEST_F(RetentionOfEvents, APurgedEventThatIsSentAgainIsADuplicateAlsoAfterARestart) {
  const auto event = note_in(in("1"), "again");
  store(event);
  let_days_pass(rig, 38);
  run();
  NostrClient live(rig.url());
  live.request("live", fmt::format(R"({{"#t":["{}"]}})", topic('1')));
  for (int i = 0; i < 2; ++i) {
    NostrClient sender(rig.url());
    const auto answer = sender.publish(event);
    EXPECT_TRUE(answer.accepted);
    EXPECT_EQ(answer.text, "duplicate: already stored");
    EXPECT_FALSE(is_stored(event));
    if (i > 0) break;
    // Live delivery is in order: what comes first is not the purged one.
    const auto next = note_in(in("1"), "next");
    EXPECT_TRUE(sender.publish(next).accepted);
    EXPECT_EQ(id_in(live.receive(R"(["EVENT")")), hex_of(next));
    rig.stop();
    rig.start();
  }
  EXPECT_EQ(rows("events_outbox", fmt::format("event_id = '{}'", hex_of(event))), "1");
}

TEST_F(RetentionOfEvents, MemoryForgetsWhatWasPurged) {
  store(note_in(in("1")));
  EXPECT_EQ(ids_in('1').size(), 1U);  // fills the window of the topic
  EXPECT_EQ(ids_in('1').size(), 1U);
  let_days_pass(rig, 38);
  run();
  EXPECT_TRUE(await([&] { return ids_in('1').empty(); }));
}

TEST_F(RetentionOfEvents, AnEventOfATopicThatCameToBeKeptLongerOutlivesItsWeekAndIsReadAsBefore) {
  const auto kept = note(alice, "kept", {{"t", topic('1')}, {"p", hex_of(bob)}}, 1, kTime);
  const auto gone = note_in(in("2"));
  store(kept);
  store(gone);
  const auto seq =
      rig.value(fmt::format("SELECT ingested_seq FROM cn_relay.events WHERE event_id = '{}'", hex_of(kept)));
  let_days_pass(rig, 38);
  set_policy(topic('1'), R"({"retention_days": 60})");
  const auto totals = run();
  EXPECT_EQ(totals.weeks, 1);
  EXPECT_EQ(totals.moved, 1);
  EXPECT_EQ(lifetime(kept), "k");
  EXPECT_FALSE(is_stored(gone));
  NostrClient reader(rig.url());
  EXPECT_THAT(reader.stored(fmt::format(R"({{"#t":["{}"]}})", topic('1'))).ids, ElementsAre(hex_of(kept)));
  EXPECT_THAT(reader.stored(fmt::format(R"({{"#p":["{}"],"#t":["{}"]}})", hex_of(bob), topic('1'))).ids,
              ElementsAre(hex_of(kept)));
  EXPECT_THAT(
      reader.stored(fmt::format(R"({{"#t":["{}"],"seq_after":{}}})", topic('1'), std::stoll(seq) - 1)).ids,
      ElementsAre(hex_of(kept)));
  EXPECT_THAT(reader.count("c", fmt::format(R"({{"#t":["{}"]}})", topic('1'))), HasSubstr(R"("count":1)"));
  EXPECT_EQ(rig.value(fmt::format("SELECT ingested_seq FROM cn_relay.event_topics WHERE event_id = '{}'",
                                  hex_of(kept))),
            seq);
  // Until its own period is over.
  let_days_pass(rig, 30);
  EXPECT_EQ(run().events, 1);
  EXPECT_EQ(rows("event_topics"), "0");
  EXPECT_EQ(rows("event_tags"), "0");
}

TEST_F(RetentionOfEvents, ALongerPeriodOfTheNodeHoldsForWhatIsStoredAlready) {
  store(note_in(in("1")));
  let_days_pass(rig, 38);
  EXPECT_EQ(run({.regular = 60}).weeks, 0);
  EXPECT_EQ(ids_in('1').size(), 1U);
}

TEST_F(RetentionOfEvents, AnEventOfSeveralTopicsLivesAsLongAsItsLongest) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  set_policy(topic('2'), R"({"retention_days": 60})");
  const auto shortest = note_in(in("1"));
  const auto with_other = note_in(in("13"));
  const auto with_longer = note_in(in("12"));
  for (const auto* event : {&shortest, &with_other, &with_longer}) store(*event);
  let_days_pass(rig, 4);
  EXPECT_EQ(run().events, 1);
  EXPECT_FALSE(is_stored(shortest));
  // What memory still holds goes a moment later.
  EXPECT_TRUE(await([&] { return ids_in('1').size() == 2; }));
  EXPECT_THAT(ids_in('1'), UnorderedElementsAre(hex_of(with_other), hex_of(with_longer)));
  let_days_pass(rig, 36);
  run();
  EXPECT_FALSE(is_stored(with_other));
  EXPECT_TRUE(await([&] { return ids_in('1') == Ids{hex_of(with_longer)}; }));
  EXPECT_THAT(ids_in('2'), ElementsAre(hex_of(with_longer)));
  let_days_pass(rig, 25);
  run();
  EXPECT_EQ(rows("events"), "0");
}

TEST_F(RetentionOfEvents, ADeletedEventOfAShortTopicGoesThoughItHasNoLinks) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  const auto event = note_in(in("1"));
  store(event);
  const auto request = note(alice, "", {{"e", hex_of(event)}, {"t", topic('1')}}, 5);
  store(request);
  let_days_pass(rig, 4);
  EXPECT_EQ(run().events, 1);
  EXPECT_FALSE(is_stored(event));
  EXPECT_TRUE(is_stored(request));
}

TEST_F(RetentionOfEvents, SupersededVersionsGoAfterTheirDaysAndTheCurrentOneStays) {
  const auto profile = [&](const std::string& content, std::int64_t at) {
    return note(alice, content, {{"t", topic('1')}}, 0, at);
  };
  const auto old = profile("old", kTime);
  const auto current = profile("current", kTime + 1);
  store(old);
  store(current);
  let_days_pass(rig, 6);
  EXPECT_EQ(run().events, 0);
  let_days_pass(rig, 2);
  EXPECT_EQ(run().events, 1);
  EXPECT_FALSE(is_stored(old));
  let_days_pass(rig, 1'000);
  run();
  EXPECT_THAT(ids_in('1'), ElementsAre(hex_of(current)));
  EXPECT_EQ(rows("event_dedupe", fmt::format("event_id = '{}'", hex_of(current))), "1")
      << "a dedupe row goes before its event";
  // The older version is no news, and does not come back.
  NostrClient sender(rig.url());
  EXPECT_EQ(sender.publish(current).text, "duplicate: already stored");
  sender.publish(old);
  EXPECT_THAT(ids_in('1'), ElementsAre(hex_of(current)));
}

TEST_F(RetentionOfEvents, ADeletedVersionGoesAndItsMarkKeepsOlderOnesOut) {
  const auto version = note(alice, "v", {{"t", topic('1')}, {"d", "x"}}, 30'023, kTime);
  store(version);
  store(note(alice, "", {{"a", "30023:" + hex_of(alice) + ":x"}, {"t", topic('1')}}, 5, kTime + 10));
  let_days_pass(rig, 8);
  EXPECT_EQ(run().events, 1);
  EXPECT_FALSE(is_stored(version));
  EXPECT_EQ(rows("current_versions", "gone_at IS NOT NULL"), "1");
}

TEST_F(RetentionOfEvents, DeletionRequestsTombstonesAndDedupeRowsGoAfterTheirDays) {
  const auto event = note_in(in("1"));
  store(event);
  store(note(alice, "", {{"e", hex_of(event)}, {"t", topic('1')}}, 5));
  let_days_pass(rig, 179);
  run();
  EXPECT_EQ(rows("events", "kind = 5"), "1");
  EXPECT_EQ(rows("deletion_tombstones"), "1");
  EXPECT_EQ(rows("event_dedupe"), "2");
  let_days_pass(rig, 2);
  const auto totals = run();
  EXPECT_EQ(totals.events, 1);
  EXPECT_EQ(totals.tombstones, 1);
  EXPECT_EQ(totals.dedupe_rows, 2);
  EXPECT_EQ(rows("events"), "0");
}

TEST_F(RetentionOfEvents, EachPeriodOfATopicGoesBeforeThatOfTheNode) {
  set_policy(topic('1'),
             R"({"retention_days": 3, "superseded_days": 20, "deletion_days": 10, "tombstone_days": 300,
                             "dedupe_days": 250})");
  // The set of topics in force shows in what is stored.
  ASSERT_TRUE(await([&] {
    store(note_in(in("1")));
    return rows("event_dedupe", "keep_days = 250") != "0";
  }));
  store(note(alice, "a", {{"t", topic('1')}}, 0, kTime));
  store(note(alice, "b", {{"t", topic('1')}}, 0, kTime + 1));
  store(note(alice, "", {{"e", std::string(64, 'e')}, {"t", topic('1')}}, 5));
  let_days_pass(rig, 11);
  run();
  EXPECT_EQ(rows("events", "kind = 1"), "0");
  EXPECT_EQ(rows("events", "kind = 5"), "0");
  EXPECT_EQ(rows("events", "kind = 0"), "2");
  let_days_pass(rig, 10);
  run();
  EXPECT_EQ(rows("events", "kind = 0"), "1");
  let_days_pass(rig, 200);
  run();
  EXPECT_NE(rows("event_dedupe", "keep_days = 250"), "1");
  EXPECT_EQ(rows("deletion_tombstones"), "1");
  let_days_pass(rig, 100);
  run();
  EXPECT_EQ(rows("event_dedupe"), "1") << "of the current version alone";
  EXPECT_EQ(rows("deletion_tombstones"), "0");
}

TEST_F(RetentionOfEvents, TagsThatSqlCantReadGoWithTheirEvent) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  store(note(alice, "x", {{"t", topic('1')}, {"x", std::string("a\0b", 3)}, {"y", "plain"}}, 1, kTime));
  EXPECT_EQ(rows("event_tags"), "2");
  let_days_pass(rig, 4);
  EXPECT_EQ(run().events, 1);
  EXPECT_EQ(rows("event_tags"), "0");
}

TEST_F(RetentionOfEvents, ThePlanIsWhatARunDrops) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  set_policy(topic('2'), R"({"retention_days": 300})");
  for (int i = 0; i < 3; ++i) store(note_in(in("3")));
  store(note_in(in("13")));
  store(note_in(in("23")));
  store(note(alice, "a", {{"t", topic('3')}}, 0, kTime));
  store(note(alice, "b", {{"t", topic('3')}}, 0, kTime + 1));
  store(note(alice, "", {{"e", std::string(64, 'e')}, {"t", topic('3')}}, 5));
  let_days_pass(rig, 40);
  store(note_in(in("1")));
  store(note_in(in("3")));
  let_days_pass(rig, 5);
  for (const auto& periods :
       {RetentionPeriods{}, RetentionPeriods{.deletion = 40, .tombstone = 44, .dedupe = 44}}) {
    const auto planned = plan(periods);
    const auto of = [&](const char* what) { return planned.contains(what) ? planned.at(what) : 0; };
    const auto totals = run(periods);
    EXPECT_EQ(of("week"), totals.week_events);
    EXPECT_EQ(of("moved"), totals.moved);
    EXPECT_EQ(of("regular") + of("superseded") + of("deletion requests"), totals.events);
    EXPECT_EQ(of("dedupe rows"), totals.dedupe_rows);
    EXPECT_EQ(of("tombstones"), totals.tombstones);
    EXPECT_GT(totals.week_events + totals.events + totals.dedupe_rows, 0) << "the test shows nothing";
    EXPECT_TRUE(plan(periods).empty());
  }
}

TEST_F(RetentionOfEvents, AnOpenTransactionHoldsAWeekAndTheNextRunDropsIt) {
  store(note_in(in("1")));
  let_days_pass(rig, 38);
  SqlSession reader(rig.database()->url());
  reader.run("BEGIN");
  reader.run("SELECT count(*) FROM cn_relay.events");
  const auto held = run();
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.weeks, 0);
  EXPECT_EQ(rows("events"), "1");
  reader.run("COMMIT");
  const auto totals = run();
  EXPECT_FALSE(totals.held);
  EXPECT_EQ(totals.weeks, 1);
}

TEST_F(RetentionOfEvents, OneProcessAtATimeRunsIt) {
  SqlSession other(rig.database()->url());
  other.run("SELECT pg_advisory_lock(cn_names.lock_purge())");
  EXPECT_THROW(run({}, std::chrono::milliseconds(1)), std::runtime_error);
}

TEST_F(RetentionOfEvents, AnAuditKnowsWhatWasPurged) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  store(note_in(in("1")));
  store(note(alice, "a", {{"t", topic('2')}}, 0, kTime));
  store(note(alice, "b", {{"t", topic('2')}}, 0, kTime + 1));
  store(note_in(in("2")));
  let_days_pass(rig, 10);
  EXPECT_EQ(run().events, 2);
  const auto audit = [&] {
    return run_task([&]() -> Task<outbox::Audit> {
      const auto connection = co_await rig.database()->connect();
      co_return co_await outbox::audit(*connection, [](const std::string&) {});
    });
  };
  EXPECT_TRUE(audit().is_clean());
  EXPECT_EQ(audit().log.purged, 2);
  let_days_pass(rig, 28);
  run();
  EXPECT_TRUE(audit().is_clean());
  const auto lost = note_in(in("3"));
  store(lost);
  rig.sql(fmt::format("DELETE FROM cn_relay.events WHERE event_id = '{}'", hex_of(lost)));
  EXPECT_FALSE(audit().is_clean()) << "what was not purged is lost";
}

TEST_F(RetentionOfEvents, PeriodsThatContradictEachOtherAreNamed) {
  const auto problems = [&](RetentionPeriods periods) {
    return run_task([&]() -> Task<std::vector<std::string>> {
      const auto connection = co_await rig.database()->connect();
      co_return co_await relay::period_problems(*connection, periods, std::nullopt, std::nullopt,
                                                soon_enough());
    });
  };
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({.regular = 30, .dedupe = 20}),
              ElementsAre("retention.dedupe_days (20) must be at least retention.regular_days (30)"));
  const auto kept = "retention_days of " + topic('1') + " (200)";
  set_policy(topic('1'), R"({"retention_days": 200})");
  EXPECT_THAT(problems({.tombstone = 300}),
              ElementsAre("retention.dedupe_days (180) must be at least " + kept));
  EXPECT_THAT(problems({.tombstone = 200, .dedupe = 200}), IsEmpty());
  set_policy(topic('2'), R"({"tombstone_days": 100})");
  EXPECT_THAT(problems({.regular = 150, .tombstone = 190}),
              UnorderedElementsAre("retention.dedupe_days (180) must be at least " + kept,
                                   "retention.tombstone_days (190) must be at least " + kept,
                                   "tombstone_days of " + topic('2') + " (100) must be at least " + kept,
                                   "tombstone_days of " + topic('2') +
                                       " (100) must be at least retention.regular_days (150)"));
}

TEST(PeriodProblems, OnlyWhatIsNewIsRefusedAndAllOfItIsNamed) {
  const std::vector<std::string> before{"a (1) must be at least b (2)"};
  auto after = before;
  EXPECT_THAT(relay::new_problems(before, after), IsEmpty());
  after.emplace_back("c (1) must be at least d (2)");
  after.emplace_back("e (1) must be at least f (2)");
  EXPECT_EQ(
      relay::period_text(relay::new_problems(before, after)),
      "c (1) must be at least d (2); e (1) must be at least f (2): what was purged could come back as news");
  EXPECT_THAT(relay::period_text(std::vector<std::string>(12, "x")), HasSubstr("; and 2 more of that kind"));
}

TEST_F(RetentionOfEvents, ARelayDoesNotStartWithPeriodsThatContradictEachOther) {
  set_policy(topic('1'), R"({"retention_days": 200})");
  const TempFolder folder;
  TodokeRun node("relay", folder.path(), {"--database.url", rig.database()->url()});
  const auto exit = node.process().wait();
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err,
              HasSubstr("retention.dedupe_days (180) must be at least retention_days of " + topic('1')));
}

TEST_F(RetentionOfEvents, APolicyWithAWrongPeriodIsRefused) {
  SqlSession session(rig.database()->url());
  for (const auto* policy :
       {R"({"superseded_days": 0})", R"({"dedupe_days": 36501})", R"({"deletion_days": "7"})",
        R"({"retention_days": 1.5})", R"({"tombstone_days": 99999999999})"}) {
    EXPECT_EQ(session.tried(fmt::format(
                  "UPDATE cn_relay.node_subscriptions SET ingest_policy = '{}' WHERE topic_id = '{}'", policy,
                  topic('1'))),
              "23514")
        << policy;
  }
}

TEST_F(RetentionOfEvents, RegularDaysThatChangeWhileItRunsDecideWhatIsKeptLonger) {
  set_policy(topic('1'), R"({"retention_days": 20})");
  rig.change({{"retention.regular_days", "10"}});
  EXPECT_TRUE(await([&] {
    const auto event = note_in(in("1"));
    store(event);
    return lifetime(event) == "k";
  }));
}

TEST_F(RetentionOfEvents, UsageCountsEachTopicAndTheWholeOnce) {
  store(note_in(in("12")));
  store(note_in(in("2")));
  store(note(alice, "a", {{"t", topic('2')}}, 0, kTime));
  EXPECT_EQ(rig.sql("SELECT topic_id, sum(events) FROM cn_relay.topic_usage GROUP BY 1 ORDER BY 1"),
            (Rows{"|3", topic('1') + "|1", topic('2') + "|3"}));
  EXPECT_EQ(rows("topic_usage", "week = '-infinity' AND events = 1"), "2");
  EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0");
  EXPECT_EQ(
      rig.value("SELECT sum(u.bytes) = (SELECT sum(cn_relay.event_bytes(content, tags::text, raw)) FROM "
                "cn_relay.events) FROM cn_relay.topic_usage u WHERE topic_id = ''"),
      "t");
}

TEST_F(RetentionOfEvents, CapacityPurgesTheOldestWeekAndTheOldestOfATopic) {
  store(note_in(in("1")));
  const auto longer = note_in(in("2"));
  store(longer);
  set_policy(topic('2'), R"({"retention_days": 60})");
  let_days_pass(rig, 14);
  const auto oldest = note_in(in("1"));
  const auto shared = note_in(in("13"));
  store(oldest);
  store(shared);
  const auto now = SystemClock().now();
  run_task([&]() -> Task<void> {
    const auto connection = co_await rig.database()->connect();
    const auto pause = []() -> Task<void> { co_return; };
    const auto begun = co_await relay::purge_oldest_week(*connection, now, 7, 30, 1, pause, soon_enough());
    EXPECT_TRUE(begun.under_way);
    EXPECT_EQ(begun.moved, 1);
    const auto week = co_await relay::purge_oldest_week(*connection, now, 7, 30, 1, pause, soon_enough());
    EXPECT_TRUE(week.dropped);
    EXPECT_EQ(week.purged.events, 1);
    const auto none = co_await relay::purge_oldest_week(*connection, now, 7, 30, 1, pause, soon_enough());
    EXPECT_FALSE(none.dropped || none.held || none.under_way);
    relay::TopicPlace place;
    const auto page =
        co_await relay::purge_oldest_of_topic(*connection, topic('1'), now, place, 100, soon_enough());
    EXPECT_TRUE(page.is_last);
    EXPECT_EQ(page.purged.events, 1);
    const auto left = co_await relay::usage_of_topic(*connection, topic('1'), soon_enough());
    EXPECT_EQ(left.events, 1);
  });
  EXPECT_TRUE(is_stored(longer));
  EXPECT_FALSE(is_stored(oldest));
  EXPECT_TRUE(is_stored(shared)) << "another topic has it too";
  EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0");
}

TEST_F(RetentionOfEvents, FromCapacityOnlyAPeriodLongerThanTheNodesProtects) {
  set_policy(topic('1'), R"({"retention_days": 20})");
  set_policy(topic('2'), R"({"retention_days": 60})");
  const auto shorter = note_in(in("1"));
  const auto longer = note_in(in("2"));
  store(shorter);
  store(longer);
  let_days_pass(rig, 15);
  const auto week = run_task([&]() -> Task<relay::OldestWeek> {
    const auto connection = co_await rig.database()->connect();
    const auto pause = []() -> Task<void> { co_return; };
    co_return co_await relay::purge_oldest_week(*connection, SystemClock().now(), 7, 30, 10, pause,
                                                soon_enough());
  });
  EXPECT_TRUE(week.dropped);
  // The longer one is a kept event from the beginning, or was moved.
  EXPECT_TRUE(is_stored(longer));
  EXPECT_FALSE(is_stored(shorter));
}

TEST_F(RetentionOfEvents, OthersHaveThePurgeLockBetweenTwoTurns) {
  set_policy(topic('1'), R"({"retention_days": 90})");
  fill_two_weeks(rig);
  std::jthread other;
  std::string moved_meanwhile;
  const auto is_waiting = [&] {
    return rig.value(
               "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = "
               "current_database() "
               "WHERE l.locktype = 'advisory' AND NOT l.granted "
               "AND (l.classid::bigint << 32 | l.objid::bigint) = cn_names.lock_purge()") == "1";
  };
  const auto totals = run_task([&]() -> Task<std::optional<RetentionTotals>> {
    const auto connection = co_await rig.database()->connect();
    relay::RetentionSteps steps;
    steps.at = SystemClock().now();
    steps.steps_of_turn = 1;
    steps.lock_wait = kPatience;
    steps.pause = [&]() -> Task<void> {
      if (other.joinable()) co_return;
      other = std::jthread([&] {
        SqlSession session(rig.database()->url());
        session.run(
            fmt::format("SELECT cn_relay.take_purge_lock({})", std::chrono::milliseconds(kPatience).count()));
        moved_meanwhile = session.value("SELECT count(*) FROM cn_relay.events_kept");
      });
      wait_until("somebody who waits for the purge lock", is_waiting);
    };
    co_return co_await relay::run_retention(*connection, std::move(steps));
  });
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->moved, 600);
  EXPECT_EQ(totals->weeks, 2);
  other.join();
  EXPECT_EQ(moved_meanwhile, "200") << "it had to wait for more than one turn";
}

TEST_F(RetentionOfEvents, AWalkGoesOnWhereItWasAfterARestartToo) {
  set_policy(topic('1'), R"({"retention_days": 36500})");
  fill_kept(topic('1'), 1, 200, 80);
  fill_kept(topic('2'), 201, 1, 40);
  // Each round is one of another process, that knows nothing of the others.
  EXPECT_FALSE(round_of(1).is_through);
  EXPECT_EQ(rows("events"), "201");
  EXPECT_EQ(round_of(1).totals.events, 1);
  EXPECT_EQ(rows("events"), "200");
}

TEST_F(RetentionOfEvents, KeptEventsYoungerThanTheShortestPeriodAreNotLookedAt) {
  set_policy(topic('1'), R"({"retention_days": 36500})");
  fill_kept(topic('1'), 1, 300, 10);
  EXPECT_TRUE(round_of(1).is_through);
  set_policy(topic('2'), R"({"deletion_days": 5})");
  EXPECT_FALSE(round_of(1).is_through);
}

TEST_F(RetentionOfEvents, DedupeRowsAreReadOnceADayAlsoAfterARestart) {
  store(note_in(in("1")));
  const auto round = [&] {
    return run_task([&]() -> Task<relay::RetentionRound> {
      const auto connection = co_await rig.database()->connect();
      relay::RetentionSteps steps;
      steps.at = SystemClock().now();
      steps.marks_every = std::chrono::hours(24);
      co_return co_await relay::retention_round(*connection, std::move(steps));
    });
  };
  EXPECT_EQ(round().totals.dedupe_rows, 0);
  rig.sql(
      "INSERT INTO cn_relay.event_dedupe (event_id, last_seen_at) VALUES ('old', now() - interval '200 "
      "days')");
  EXPECT_EQ(round().totals.dedupe_rows, 0);
  rig.sql("UPDATE cn_relay.purge_walks SET finished_at = finished_at - interval '25 hours'");
  EXPECT_EQ(round().totals.dedupe_rows, 1);
}

TEST_F(RetentionOfEvents, AStepThatRunsIntoALockIsCountedAndLeftToTheNextRun) {
  set_policy(topic('1'), R"({"retention_days": 90})");
  fill_two_weeks(rig);
  store(note(alice, "a", {{"t", topic('2')}}, 0, kTime));
  store(note(alice, "b", {{"t", topic('2')}}, 0, kTime + 1));
  rig.sql("UPDATE cn_relay.events SET superseded_at = superseded_at - interval '8 days'");
  SqlSession other(rig.database()->url());
  // Nothing moves meanwhile; what goes by itself goes all the same.
  other.run("BEGIN");
  other.run("SELECT pg_advisory_xact_lock(cn_names.lock_log())");
  const auto held = round_of(relay::kStepsOfTurn).totals;
  EXPECT_EQ(held.lock_timeouts, 1);
  EXPECT_EQ(held.moved, 0);
  EXPECT_EQ(held.events, 1);
  other.run("COMMIT");
  EXPECT_EQ(run().moved, 600);
}

TEST_F(RetentionOfEvents, AWeekThatIsTakenOutAndStillReadIsDroppedByTheNextRun) {
  store(note_in(in("1")));
  let_days_pass(rig, 38);
  const auto week = rig.value("SELECT cn_relay.week_of(min(ingested_at)) FROM cn_relay.events");
  const auto table =
      rig.value(fmt::format("SELECT 'cn_relay.' || cn_relay.week_table('events', '{}')", week));
  SqlSession reader(rig.database()->url());
  rig.sql(fmt::format("SELECT cn_relay.detach_week('{}')", week));
  reader.run("BEGIN");
  reader.run("SELECT count(*) FROM " + table);
  EXPECT_EQ(run().lock_timeouts, 1);
  reader.run("COMMIT");
  EXPECT_EQ(run().lock_timeouts, 0);
  EXPECT_EQ(rig.value(fmt::format("SELECT to_regclass('{}') IS NULL", table)), "t");
}

TEST_F(RetentionOfEvents, NothingIsPurgedWhileTheClocksOfNodeAndDatabaseDiffer) {
  store(note_in(in("1")));
  let_days_pass(rig, 38);
  for (const auto shift : {std::chrono::seconds(600), std::chrono::seconds(-600)}) {
    const auto round = round_of(100, shift);
    ASSERT_TRUE(round.clocks_apart);
    EXPECT_EQ(*round.clocks_apart > std::chrono::seconds(0), shift > std::chrono::seconds(0));
  }
  EXPECT_EQ(rows("events"), "1");
  EXPECT_THROW(run_task([&]() -> Task<void> {
                 const auto connection = co_await rig.database()->connect();
                 relay::RetentionSteps steps;
                 steps.at = SystemClock().now() + std::chrono::hours(1);
                 co_await relay::run_retention(*connection, std::move(steps));
               }),
               UserError);
  EXPECT_EQ(rows("events"), "1");
  EXPECT_EQ(run().weeks, 1);
}

TEST_F(RetentionOfEvents, ANodeWhoseClockIsWrongSaysSo) {
  store(note_in(in("1")));
  let_days_pass(rig, 38);
  ShiftedClock clock;
  HealthBoard health;
  metrics::Registry registry;
  const auto round = [&] {
    run_task([&]() -> Task<void> {
      relay::RetentionOptions options;
      options.connect.url = rig.database()->url();
      relay::Retention retention(co_await asio::this_coro::executor, options, clock, health, registry);
      co_await retention.round(RoundCause::time);
    });
  };
  const auto is_said = [&] {
    const auto lines = health.lines();
    return std::any_of(lines.begin(), lines.end(),
                       [](const auto& line) { return line.name == "retention clock"; });
  };
  clock.shift(std::chrono::hours(1));
  round();
  EXPECT_TRUE(is_said());
  EXPECT_EQ(health.overall(), HealthState::degraded);
  EXPECT_THAT(registry.render(), HasSubstr("todoke_retention_clocks_apart 1"));
  EXPECT_EQ(rows("events"), "1");
  clock.shift(std::chrono::seconds(0));
  round();
  EXPECT_FALSE(is_said());
  EXPECT_EQ(rows("events"), "0");
}

TEST_F(RetentionOfEvents, ThePurgeLockGoesAlsoAfterWorkThatTookLongerThanItsDeadline) {
  const auto connection_stays = run_task([&]() -> Task<bool> {
    const auto connection = co_await rig.database()->connect();
    const auto deadline = Deadline::after(std::chrono::seconds(2));
    const bool was_free = co_await relay::with_purge_lock(
        *connection, std::chrono::milliseconds(0),
        [&](pg::Connection&) -> Task<void> {
          while (!deadline.passed()) co_await sleep_for(std::chrono::milliseconds(10));
        },
        deadline);
    EXPECT_TRUE(was_free);
    EXPECT_EQ(rig.value("SELECT pg_try_advisory_lock(cn_names.lock_purge())"), "t");
    co_return connection->usable();
  });
  EXPECT_TRUE(connection_stays);
}

TEST_F(RetentionOfEvents, BesideIngestNothingIsLost) {
  set_policy(topic('1'), R"({"retention_days": 3})");
  set_policy(topic('2'), R"({"retention_days": 60})");
  for (int i = 0; i < 100; ++i) store(note_in(in(i % 2 == 0 ? "1" : "3")));
  let_days_pass(rig, 40);
  std::atomic<bool> ends = false;
  std::atomic<int> runs = 0;
  std::jthread beside([&] {
    while (!ends) {
      run_task([&]() -> Task<void> {
        const auto connection = co_await rig.database()->connect();
        relay::RetentionSteps steps;
        steps.at = SystemClock().now();
        co_await relay::run_retention(*connection, std::move(steps));
      });
      ++runs;
    }
  });
  std::vector<Event> stored;
  for (int i = 0; i < 200 || runs < 2; ++i) {
    // Versions and deletions lock what retention looks at.
    if (i % 5 == 0) {
      store(note(alice, std::to_string(i), {{"t", topic('1')}}, 0, kTime + i));
      if (i > 5) store(note(alice, "", {{"e", hex_of(stored.back())}, {"t", topic('3')}}, 5));
      if (!stored.empty() && i > 5) stored.pop_back();
    }
    stored.push_back(note_in(in(i % 2 == 0 ? "12" : "3")));
    store(stored.back());
  }
  ends = true;
  beside.join();
  for (const auto& event : stored) EXPECT_TRUE(is_stored(event));
  EXPECT_EQ(rows("events", "ingested_at < now() - interval '30 days'"), "0");
  EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0");
}

TEST_F(RetentionOfEvents, AProcessThatIsKilledLeavesAllConsistentAndTheNextRunEndsIt) {
  set_policy(topic('1'), R"({"retention_days": 90})");
  fill_two_weeks(rig);
  TempFolder folder;
  ChildProcess killed({todoke_binary(), "retention", "run", "--database.url", rig.database()->url(),
                       "--data_dir", folder.path().string()},
                      {});
  killed.wait_for_output("200 events moved");
  killed.kill(SIGKILL);
  EXPECT_EQ(killed.wait().signal, SIGKILL);
  EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0");
  EXPECT_EQ(rows("events", fmt::format("topics = ARRAY['{}']", topic('1'))), "600")
      << "each once, wherever it is";
  EXPECT_EQ(
      rig.value(
          "SELECT count(*) FROM cn_relay.events e JOIN cn_relay.event_topics l USING (event_id, ingested_at, "
          "lifetime) JOIN cn_relay.event_tags g USING (event_id, ingested_at, lifetime)"),
      rows("events"));
  // Its session may live for a moment longer, with the lock.
  ASSERT_TRUE(await([&] { return rig.value("SELECT pg_try_advisory_lock(cn_names.lock_purge())") == "t"; }));
  const auto totals = run();
  EXPECT_GT(totals.moved, 0);
  EXPECT_EQ(rows("events"), "600");
  EXPECT_EQ(rows("events_kept"), "600");
  EXPECT_EQ(rows("event_topics"), "600");
  EXPECT_EQ(rows("event_tags"), "600");
}

TEST(RetentionAndTheIndex, DocumentsOfPurgedEventsGo) {
  RelayRig rig(NodeRigOptions{.roles = {"index"}, .flags = {{"relay.search", "on"}}});
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  store_at(client, global_note(alice, "searched for"));
  rig.await_index();
  const std::string search = R"({"search":"searched","#t":["kukuri:global"]})";
  EXPECT_EQ(client.stored(search).ids.size(), 1U);
  let_days_pass(rig, 38);
  run_task([&]() -> Task<void> {
    const auto connection = co_await rig.database()->connect();
    relay::RetentionSteps steps;
    steps.at = SystemClock().now();
    co_await relay::run_retention(*connection, std::move(steps));
  });
  EXPECT_THAT(client.stored(search).ids, IsEmpty());
  const auto step = run_task([&]() -> Task<index::SweepStep> {
    const auto connection = co_await rig.database()->connect();
    co_return co_await index::sweep_purged(*connection, "", 100, soon_enough());
  });
  EXPECT_EQ(step.removed, 1);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_search.post_search_documents"), "0");
}

}  // namespace
}  // namespace todoke::test
