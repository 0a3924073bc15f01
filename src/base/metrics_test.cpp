#include "base/metrics.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::metrics {
namespace {

using testing::HasSubstr;

TEST(Metrics, RendersTextThatPrometheusReads) {
  Registry registry;
  registry.counter("todoke_a_total", "Things.").add(3);
  registry.gauge("todoke_level", "Level.").set(1.5);
  auto& h = registry.histogram("todoke_c_seconds", "Time.", {0.1, 1});
  h.observe(0.05);
  h.observe(0.1);
  h.observe(5);
  const auto text = registry.render();
  EXPECT_THAT(text,
              HasSubstr("# HELP todoke_a_total Things.\n# TYPE todoke_a_total counter\ntodoke_a_total 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE todoke_level gauge\ntodoke_level 1.5\n"));
  EXPECT_THAT(text, HasSubstr("todoke_c_seconds_bucket{le=\"0.1\"} 2\n"
                              "todoke_c_seconds_bucket{le=\"1\"} 2\n"
                              "todoke_c_seconds_bucket{le=\"+Inf\"} 3\n"
                              "todoke_c_seconds_sum 5.15\n"
                              "todoke_c_seconds_count 3\n"));
}

TEST(Metrics, LabelsAreEscaped) {
  Registry registry;
  registry.counters("todoke_l_total", "L.", {"path"}).with({"a\"b\\c\nd"}).add();
  EXPECT_THAT(registry.render(), HasSubstr(R"(todoke_l_total{path="a\"b\\c\nd"} 1)"));
}

TEST(Metrics, AFamilyAtItsLimitCountsUnderOtherAndSaysSo) {
  Registry registry;
  auto& family = registry.counters("todoke_f_total", "F.", {"who"}, 2);
  family.with({"a"}).add();
  family.with({"b"}).add();
  family.with({"c"}).add();
  family.with({"d"}).add();
  family.with({"a"}).add();
  const auto text = registry.render();
  EXPECT_THAT(text, HasSubstr("todoke_f_total{who=\"a\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("todoke_f_total{who=\"other\"} 2\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("who=\"c\"")));
  EXPECT_THAT(text, HasSubstr("todoke_metrics_series_overflow_total 2\n"));
}

TEST(Metrics, TheSameNameIsTheSameMetricAndAnotherTypeIsRefused) {
  Registry registry;
  registry.counter("todoke_x_total", "X.").add();
  EXPECT_EQ(registry.counter("todoke_x_total", "X.").value(), 1U);
  EXPECT_THROW(registry.counters("todoke_x_total", "X.", {"l"}), std::invalid_argument);
  EXPECT_THROW(registry.counter("todoke_bad", "A counter without _total."), std::invalid_argument);
  EXPECT_THROW(registry.gauge("Todoke", "Upper case."), std::invalid_argument);
}

TEST(Metrics, NamesAndHelpTextsThatPromtoolComplainsOfAreRefused) {
  Registry registry;
  EXPECT_THROW(registry.gauge("todoke_age_seconds", ""), std::invalid_argument) << "no help text";
  EXPECT_THROW(registry.gauge("todoke_done_total", "A gauge."), std::invalid_argument);
  for (const auto* name :
       {"todoke_wait_ms", "ms_waited", "todoke_s_waited", "todoke_age_days", "todoke_size_kb",
        "todoke_wait_milliseconds", "todoke_age_gauge", "todoke_gauge_age", "todoke_row_count",
        "todoke_rows_sum", "todoke_rows_bucket", "todoke:rows"}) {
    EXPECT_THROW(registry.gauge(name, "Something."), std::invalid_argument) << name;
  }
  EXPECT_NO_THROW(registry.gauge("todoke_pgsql_rows", "A unit inside a word."));
}

TEST(Metrics, AContractsUnitIsPermittedForItsNameAlone) {
  Registry registry;
  registry.permit_unit("wait_ms");
  EXPECT_NO_THROW(registry.histogram("wait_ms", "Something.", milliseconds_buckets()));
  EXPECT_THROW(registry.gauge("todoke_wait_ms", "Something."), std::invalid_argument);
}

TEST(Metrics, AComputedValueIsAskedForWhenRendered) {
  Registry registry;
  double value = 1;
  registry.computed("todoke_now", "N.", [&] { return value; });
  EXPECT_THAT(registry.render(), HasSubstr("todoke_now 1\n"));
  value = 2;
  EXPECT_THAT(registry.render(), HasSubstr("todoke_now 2\n"));
}

}  // namespace
}  // namespace todoke::metrics
