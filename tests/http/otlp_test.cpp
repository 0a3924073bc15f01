#include <mutex>

#include <gtest/gtest.h>

#include "harness/http_rig.hpp"
#include "net/otlp_exporter.hpp"

namespace todoke::net::test {
namespace {

// A collector that keeps what it gets.
struct Collector {
  Rig rig;
  std::mutex mutex;
  std::vector<std::string> bodies;
  int status = 200;

  Collector() {
    rig.router->add("POST", "/v1/traces", [this](Request& request) -> Task<Response> {
      const std::lock_guard lock(mutex);
      bodies.push_back(request.body);
      co_return json_response(status, "{}");
    });
    rig.config.name = "collector";
    rig.start();
  }
};

struct Otlp : testing::Test {
  metrics::Registry registry;
  Tracer tracer{registry};
  Loop loop;
  std::unique_ptr<OtlpExporter> exporter;
  std::future<void> running;

  void start(const std::string& endpoint) {
    exporter = std::make_unique<OtlpExporter>(OtlpConfig{endpoint, "1.2.3", ""}, loop.executor(), tracer);
    loop.run(exporter->start());
    running = loop.start(exporter->run());
  }
  void stop() {
    loop.call([this] { exporter->stop(); });
    ASSERT_EQ(running.wait_for(kPatience), std::future_status::ready);
    running.get();
    loop.call([this] { exporter.reset(); });
  }
  double dropped() {
    return static_cast<double>(
        registry
            .counter("todoke_trace_spans_dropped_total",
                     "Spans that were not exported: the queue was full or the collector did not answer.")
            .value());
  }
};

TEST_F(Otlp, FinishedSpansReachTheCollector) {
  Collector collector;
  start(collector.rig.url("/"));
  tracer.start("a span").end();
  ASSERT_TRUE(
      collector.rig.await_metric("todoke_http_requests_total{listener=\"collector\",route=\"/v1/"
                                 "traces\",method=\"POST\",status=\"2xx\"}",
                                 1));
  stop();
  ASSERT_EQ(collector.bodies.size(), 1U);
  EXPECT_NE(collector.bodies[0].find("\"a span\""), std::string::npos);
  EXPECT_NE(collector.bodies[0].find("1.2.3"), std::string::npos);
  EXPECT_EQ(dropped(), 0);
}

TEST_F(Otlp, ManySpansGoInBatches) {
  Collector collector;
  start(collector.rig.url(""));
  for (std::size_t i = 0; i < OtlpExporter::kBatchSpans + 10; ++i) tracer.start("s").end();
  stop();
  EXPECT_EQ(collector.bodies.size(), 2U) << "what is left is sent at the stop";
  EXPECT_EQ(dropped(), 0);
}

TEST_F(Otlp, DeadCollectorCostsTheSpansOnly) {
  std::string endpoint;
  {
    Collector gone;
    endpoint = gone.rig.url("");
  }
  start(endpoint);
  for (int i = 0; i < 3; ++i) tracer.start("s").end();
  stop();
  EXPECT_EQ(dropped(), 3);
}

TEST_F(Otlp, CollectorThatRefusesCostsTheSpansOnly) {
  Collector collector;
  collector.status = 503;
  start(collector.rig.url(""));
  tracer.start("s").end();
  stop();
  EXPECT_EQ(dropped(), 1);
}

TEST_F(Otlp, EndpointThatIsNoUrlIsRefused) {
  const OtlpExporter wrong(OtlpConfig{"collector:4318", "", ""}, loop.executor(), tracer);
  EXPECT_FALSE(wrong.validate());
}

}  // namespace
}  // namespace todoke::net::test
