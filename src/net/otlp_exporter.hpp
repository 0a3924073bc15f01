// Sends finished spans to an OpenTelemetry collector: OTLP over HTTP, JSON, POST <endpoint>/v1/traces, every
// second or as soon as 512 spans are there. A collector that fails costs the spans (counted as dropped) and
// one log line a minute.
#pragma once

#include <memory>
#include <string>

#include "base/service.hpp"
#include "base/trace.hpp"

namespace todoke::net {

struct OtlpConfig {
  std::string endpoint;  // http://127.0.0.1:4318
  std::string service_version;
  std::string ca_file;  // for https; empty: the system's authorities
};

class OtlpExporter final : public Service {
 public:
  static constexpr std::size_t kBatchSpans = 512;
  static constexpr std::chrono::milliseconds kBatchInterval{1'000};

  OtlpExporter(OtlpConfig config, Executor executor, Tracer& tracer);
  ~OtlpExporter() override;

  [[nodiscard]] std::string_view name() const override { return "otlp-exporter"; }
  [[nodiscard]] bool essential() const override { return false; }
  [[nodiscard]] Expected<void> validate() const override;
  Task<void> start() override;
  Task<void> run() override;
  // Sends what is queued once more, within half a second; a request under way has one second in all.
  void stop() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace todoke::net
