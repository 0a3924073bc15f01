// Traces: spans with W3C context, handed to an exporter through a bounded queue (src/net sends them as
// OTLP/HTTP). Without an exporter a span costs a few branches. With one that fails, spans are dropped and
// counted, nothing waits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/async.hpp"
#include "base/metrics.hpp"

namespace todoke {

struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool sampled = false;

  [[nodiscard]] bool valid() const;
};

// The header `traceparent` of W3C Trace Context, version 00. Nothing when it is malformed.
std::optional<TraceContext> parse_traceparent(std::string_view header);
std::string format_traceparent(const TraceContext& context);

struct SpanRecord {
  TraceContext context;
  std::array<std::uint8_t, 8> parent_id{};  // all zero: a root
  std::string name;
  SystemTime begin;
  SystemTime end;
  bool failed = false;
  std::vector<std::pair<std::string, std::variant<std::string, std::int64_t, double, bool>>> attributes;
};

class Tracer;

// Ends when it is destroyed, at the latest.
class Span {
 public:
  Span() = default;
  Span(Span&& other) noexcept
      : tracer_(std::exchange(other.tracer_, nullptr)), record_(std::move(other.record_)) {}
  Span& operator=(Span&& other) noexcept;
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() { end(); }

  template <class T>
  void set(std::string_view name, T value) {
    if (tracer_ != nullptr) add(name, std::move(value));
  }
  void fail() { record_.failed = true; }
  void end();
  // For the headers of outgoing requests and for child spans. Valid also when nothing is recorded.
  [[nodiscard]] const TraceContext& context() const { return record_.context; }

 private:
  friend class Tracer;
  void add(std::string_view name, std::variant<std::string, std::int64_t, double, bool> value);
  Tracer* tracer_ = nullptr;
  SpanRecord record_;
};

class Tracer {
 public:
  explicit Tracer(metrics::Registry& registry);

  // Off until an exporter is there. Thread-safe.
  void enable(bool on) { enabled_ = on; }
  // A child of `parent` where it is valid, a new trace otherwise. A parent that is not sampled gives a span
  // that is not recorded.
  Span start(std::string_view name, const std::optional<TraceContext>& parent = std::nullopt);

  // For the exporter: at most `most` finished spans, oldest first.
  std::vector<SpanRecord> take(std::size_t most);
  // For the exporter: these could not be sent.
  void count_dropped(std::size_t spans) { dropped_.add(spans); }

 private:
  friend class Span;
  void finish(SpanRecord record);

  std::atomic<bool> enabled_{false};
  metrics::Counter& dropped_;
  std::mutex mutex_;
  std::vector<SpanRecord> finished_;
};

// The body of an OTLP/HTTP JSON export request (POST /v1/traces).
std::string otlp_json(const std::vector<SpanRecord>& spans, std::string_view service_version);

}  // namespace todoke
