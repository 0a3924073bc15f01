#include "relay/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/store_model.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Reason;
using outbox::Pressure;
using outbox::PressureInput;
using testing::ElementsAre;
using testing::Optional;

constexpr std::int64_t kDelay = 600;
const TopicSettings kPlain;
const std::chrono::sys_seconds kAt{std::chrono::seconds(kNow)};

// A is strict, B takes everything, C has a low priority.
TopicSet topics() {
  TopicSet::Topics enabled;
  enabled.emplace(kTopicA,
                  TopicSet::Topic{.allow_backfill = false, .delay_seconds_max = kDelay, .limits = {}});
  enabled.emplace(kTopicB, TopicSet::Topic{});
  enabled.emplace(kTopicC, TopicSet::Topic{.low_priority = true, .limits = {}});
  return {kPlain, {}, std::move(enabled)};
}

tl::expected<Admitted, Reason> admit_from(Source source, std::int64_t age, const Tags& tags) {
  const KnownIds known;
  return admit(event_of(author(1), 1, tags, "", kNow - age), source, {}, {}, {}, {}, topics(), known, kAt);
}

std::optional<Reason> refusal(Source source, std::int64_t age, const Tags& tags) {
  const auto admitted = admit_from(source, age, tags);
  if (admitted) return std::nullopt;
  return admitted.error();
}

Incoming from(Source source, std::vector<std::string> its_topics) {
  auto incoming = incoming_of(event_of(author(1), 1, {}));
  incoming.source = source;
  incoming.topics = std::move(its_topics);
  return incoming;
}

TEST(Admission, ATopicMayRefuseWhatIsTooOld) {
  EXPECT_EQ(refusal(Source::ws, kDelay, {{"t", kTopicA}}), std::nullopt);
  EXPECT_THAT(refusal(Source::ws, kDelay + 1, {{"t", kTopicA}}), Optional(Reason::too_old_for_topic));
  EXPECT_THAT(refusal(Source::gossip, kDelay + 1, {{"t", kTopicA}}), Optional(Reason::too_old_for_topic));
  EXPECT_EQ(refusal(Source::ws, 1'000'000, {{"t", kTopicB}}), std::nullopt);
}

TEST(Admission, BackfillIsNeverTooOldButMayBeUnwanted) {
  TopicSet::Topics enabled;
  enabled.emplace(kTopicA, TopicSet::Topic{.delay_seconds_max = kDelay, .limits = {}});
  const TopicSet set(kPlain, {}, std::move(enabled));
  EXPECT_EQ(set.refusal_of(kTopicA, Source::backfill, 0, kAt), std::nullopt);
  EXPECT_THAT(refusal(Source::backfill, 0, {{"t", kTopicA}}), Optional(Reason::no_backfill));
  EXPECT_EQ(refusal(Source::backfill, 0, {{"t", kTopicB}}), std::nullopt);
}

TEST(Admission, AnEventIsTakenForThoseOfItsTopicsThatTakeIt) {
  const auto admitted = admit_from(Source::ws, kDelay + 1, {{"t", kTopicA}, {"t", kTopicB}});
  ASSERT_TRUE(admitted);
  EXPECT_THAT(admitted->incoming.topics, ElementsAre(kTopicB));
}

TEST(HeldBack, EachStepOfEitherInputHoldsMore) {
  const auto set = topics();
  const auto backfill = from(Source::backfill, {kTopicB});
  const auto low = from(Source::ws, {kTopicC});
  const auto normal = from(Source::ws, {kTopicB, kTopicC});
  for (const auto input : {PressureInput::backlog, PressureInput::capacity}) {
    Pressure pressure;
    EXPECT_EQ(held_back(backfill, set, pressure), std::nullopt);
    pressure.set(input, 1);
    EXPECT_THAT(held_back(backfill, set, pressure), Optional(Reason::no_backfill));
    EXPECT_EQ(held_back(low, set, pressure), std::nullopt);
    pressure.set(input, 2);
    EXPECT_THAT(held_back(low, set, pressure), Optional(Reason::capacity));
    EXPECT_EQ(held_back(normal, set, pressure), std::nullopt);
    pressure.set(input, 3);
    EXPECT_EQ(held_back(normal, set, pressure), std::nullopt);
  }
}

TEST(HeldBack, ARequestToVanishDoesNotWaitForTheConsumers) {
  TopicSet::Topics low;
  low.emplace(kTopicA, TopicSet::Topic{.low_priority = true, .limits = {}});
  const TopicSet set(kPlain, {}, std::move(low));
  Pressure pressure;
  pressure.set(PressureInput::backlog, 2);
  auto request = incoming_of(event_of(author(1), nostr::kVanish, {}));
  request.topics = {kTopicA};
  EXPECT_EQ(held_back(request, set, pressure), std::nullopt);
  EXPECT_THAT(held_back(from(Source::ws, {kTopicA}), set, pressure), Optional(Reason::capacity));
}

TEST(HeldBack, AFullNodeTakesNothing) {
  Pressure pressure;
  pressure.set_node_full(true);
  EXPECT_THAT(held_back(from(Source::ws, {kTopicB}), topics(), pressure), Optional(Reason::capacity));
}

}  // namespace
}  // namespace todoke::relay::test
