#include "base/trace.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/json_writer.hpp"

namespace todoke {
namespace {

constexpr std::size_t kFinishedMax = 4096;
constexpr std::size_t kAttributesMax = 32;
constexpr std::size_t kAttributeBytesMax = 1024;

template <std::size_t N>
bool all_zero(const std::array<std::uint8_t, N>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0; });
}

std::string unix_nanos(SystemTime time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

void write_attribute(JsonWriter& json, std::string_view name,
                     const std::variant<std::string, std::int64_t, double, bool>& value) {
  json.begin_object().member("key", name).key("value").begin_object();
  if (const auto* text = std::get_if<std::string>(&value)) json.member("stringValue", *text);
  if (const auto* number = std::get_if<std::int64_t>(&value))
    json.member("intValue", std::to_string(*number));
  if (const auto* number = std::get_if<double>(&value)) json.member("doubleValue", *number);
  if (const auto* flag = std::get_if<bool>(&value)) json.member("boolValue", *flag);
  json.end_object().end_object();
}

void write_span(JsonWriter& json, const SpanRecord& span) {
  constexpr int kKindInternal = 1;
  constexpr int kStatusError = 2;
  json.begin_object();
  json.member("traceId", to_hex(span.context.trace_id)).member("spanId", to_hex(span.context.span_id));
  if (!all_zero(span.parent_id)) json.member("parentSpanId", to_hex(span.parent_id));
  json.member("name", span.name).member("kind", kKindInternal);
  json.member("startTimeUnixNano", unix_nanos(span.begin)).member("endTimeUnixNano", unix_nanos(span.end));
  json.key("attributes").begin_array();
  for (const auto& [name, value] : span.attributes) write_attribute(json, name, value);
  json.end_array();
  if (span.failed) json.key("status").begin_object().member("code", kStatusError).end_object();
  json.end_object();
}

}  // namespace

bool TraceContext::valid() const {
  return !all_zero(trace_id) && !all_zero(span_id);
}

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  // 00-<32 hex>-<16 hex>-<2 hex>; a later version may append fields after another dash
  constexpr std::size_t kLength = 55;
  if (header.size() < kLength || header[2] != '-' || header[35] != '-' || header[52] != '-')
    return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceContext context;
  if (!from_hex(header.substr(0, 2), version) || version[0] == 0xFF) return std::nullopt;
  if (version[0] == 0 ? header.size() != kLength : header.size() > kLength && header[kLength] != '-')
    return std::nullopt;
  if (!from_hex(header.substr(3, 32), context.trace_id) ||
      !from_hex(header.substr(36, 16), context.span_id) || !from_hex(header.substr(53, 2), flags)) {
    return std::nullopt;
  }
  context.sampled = (flags[0] & 1) != 0;
  if (!context.valid()) return std::nullopt;
  return context;
}

std::string format_traceparent(const TraceContext& context) {
  return fmt::format("00-{}-{}-{}", to_hex(context.trace_id), to_hex(context.span_id),
                     context.sampled ? "01" : "00");
}

Span& Span::operator=(Span&& other) noexcept {
  if (this != &other) {
    end();
    tracer_ = std::exchange(other.tracer_, nullptr);
    record_ = std::move(other.record_);
  }
  return *this;
}

void Span::add(std::string_view name, std::variant<std::string, std::int64_t, double, bool> value) {
  if (record_.attributes.size() >= kAttributesMax) return;
  if (auto* text = std::get_if<std::string>(&value); text != nullptr && text->size() > kAttributeBytesMax) {
    text->resize(kAttributeBytesMax);
  }
  record_.attributes.emplace_back(name, std::move(value));
}

void Span::end() {
  if (tracer_ == nullptr) return;
  record_.end = std::chrono::system_clock::now();
  std::exchange(tracer_, nullptr)->finish(std::move(record_));
}

Tracer::Tracer(metrics::Registry& registry)
    : dropped_(registry.counter(
          "todoke_trace_spans_dropped_total",
          "Spans that were not exported: the queue was full or the collector did not answer.")) {}

Span Tracer::start(std::string_view name, const std::optional<TraceContext>& parent) {
  Span span;
  const bool has_parent = parent && parent->valid();
  const bool record = enabled_.load(std::memory_order_relaxed) && (!has_parent || parent->sampled);
  if (!record) {
    if (has_parent) span.record_.context = *parent;
    return span;
  }
  auto& r = span.record_;
  if (has_parent) {
    r.context.trace_id = parent->trace_id;
    r.parent_id = parent->span_id;
  } else {
    random_bytes(r.context.trace_id);
  }
  random_bytes(r.context.span_id);
  r.context.sampled = true;
  r.name = name;
  r.begin = std::chrono::system_clock::now();
  span.tracer_ = this;
  return span;
}

void Tracer::finish(SpanRecord record) {
  const std::lock_guard lock(mutex_);
  if (finished_.size() >= kFinishedMax) {
    dropped_.add();
    return;
  }
  finished_.push_back(std::move(record));
}

std::vector<SpanRecord> Tracer::take(std::size_t most) {
  const std::lock_guard lock(mutex_);
  const auto n = static_cast<std::ptrdiff_t>(std::min(most, finished_.size()));
  std::vector<SpanRecord> batch(std::make_move_iterator(finished_.begin()),
                                std::make_move_iterator(finished_.begin() + n));
  finished_.erase(finished_.begin(), finished_.begin() + n);
  return batch;
}

std::string otlp_json(const std::vector<SpanRecord>& spans, std::string_view service_version) {
  JsonWriter json;
  json.begin_object().key("resourceSpans").begin_array().begin_object();
  json.key("resource").begin_object().key("attributes").begin_array();
  write_attribute(json, "service.name", std::string("todoke"));
  write_attribute(json, "service.version", std::string(service_version));
  json.end_array().end_object();
  json.key("scopeSpans").begin_array().begin_object();
  json.key("scope").begin_object().member("name", "todoke").end_object();
  json.key("spans").begin_array();
  for (const auto& span : spans) write_span(json, span);
  json.end_array().end_object().end_array().end_object().end_array().end_object();
  return std::move(json).text();
}

}  // namespace todoke
