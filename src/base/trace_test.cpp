#include "base/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace todoke {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Trace, ReadsAndWritesTraceparent) {
  const auto context = parse_traceparent(kParent);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(to_hex(context->trace_id), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(format_traceparent(*context), kParent);
}

TEST(Trace, RefusesMalformedTraceparent) {
  for (const auto* bad : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                          "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                          "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
  EXPECT_TRUE(parse_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later"));
}

TEST(Trace, AChildKeepsTheTraceAndNamesItsParent) {
  metrics::Registry registry;
  Tracer tracer(registry);
  tracer.enable(true);
  const auto parent = parse_traceparent(kParent);
  {
    const auto span = tracer.start("work", parent);
  }
  const auto spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].context.trace_id, parent->trace_id);
  EXPECT_EQ(spans[0].parent_id, parent->span_id);
  EXPECT_NE(spans[0].context.span_id, parent->span_id);
}

TEST(Trace, NothingIsRecordedWhenOffOrNotSampled) {
  metrics::Registry registry;
  Tracer tracer(registry);
  {
    const auto span = tracer.start("off");
  }
  tracer.enable(true);
  auto unsampled = *parse_traceparent(kParent);
  unsampled.sampled = false;
  {
    const auto span = tracer.start("unsampled", unsampled);
  }
  EXPECT_TRUE(tracer.take(10).empty());
}

TEST(Trace, AFullQueueDropsAndCounts) {
  metrics::Registry registry;
  Tracer tracer(registry);
  tracer.enable(true);
  for (int i = 0; i < 5000; ++i) tracer.start("x").end();
  EXPECT_EQ(tracer.take(10'000).size(), 4096U);
  EXPECT_THAT(registry.render(), testing::HasSubstr("todoke_trace_spans_dropped_total 904\n"));
}

TEST(Trace, OtlpNamesTheServiceAndTheSpan) {
  metrics::Registry registry;
  Tracer tracer(registry);
  tracer.enable(true);
  {
    auto span = tracer.start("broker.send");
    span.set("adapter", std::string("paper"));
    span.set("tries", std::int64_t{2});
    span.fail();
  }
  const auto json = otlp_json(tracer.take(1), "1.2.3");
  EXPECT_THAT(json, testing::HasSubstr(R"({"key":"service.name","value":{"stringValue":"todoke"}})"));
  EXPECT_THAT(json, testing::HasSubstr(R"("name":"broker.send")"));
  EXPECT_THAT(json, testing::HasSubstr(R"({"key":"tries","value":{"intValue":"2"}})"));
  EXPECT_THAT(json, testing::HasSubstr(R"("status":{"code":2})"));
}

}  // namespace
}  // namespace todoke
