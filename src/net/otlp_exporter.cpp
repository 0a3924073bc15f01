#include "net/otlp_exporter.hpp"

#include <iterator>

#include <fmt/format.h>

#include "base/log.hpp"
#include "net/client.hpp"

namespace todoke::net {
namespace {

// How often the queue of finished spans is looked at; it holds 4096, so up to 40,000 spans a second get
// through.
constexpr std::chrono::milliseconds kLookInterval(100);
// Also how long a stop may have to wait for a collector that takes a request and does not answer.
constexpr std::chrono::milliseconds kSendTimeout(1'000);
constexpr std::chrono::milliseconds kFlushTimeout(500);
constexpr std::chrono::seconds kComplaintInterval(60);
constexpr std::size_t kAnswerBytesMax = 64 * 1024;

std::string traces_url(std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint + "/v1/traces";
}

}  // namespace

struct OtlpExporter::State {
  State(OtlpConfig c, Executor e, Tracer& t)
      : config(std::move(c)), executor(std::move(e)), tracer(t), stop_asked(executor) {}

  Task<void> send(std::vector<SpanRecord> spans, Deadline deadline);
  void complain(std::string_view why, std::size_t spans);

  const OtlpConfig config;
  const Executor executor;
  Tracer& tracer;
  Signal stop_asked;
  std::optional<Deadline> flush_until;  // once stop was asked for
  std::unique_ptr<HttpClient> client;
  Url url;
  SteadyTime complained_at{};
};

OtlpExporter::OtlpExporter(OtlpConfig config, Executor executor, Tracer& tracer)
    : state_(std::make_unique<State>(std::move(config), std::move(executor), tracer)) {}

OtlpExporter::~OtlpExporter() = default;

Expected<void> OtlpExporter::validate() const {
  if (auto url = parse_url(traces_url(state_->config.endpoint)); !url) {
    return refuse("trace.endpoint: " + url.error().message);
  }
  return {};
}

Task<void> OtlpExporter::start() {
  auto& s = *state_;
  if (auto valid = validate(); !valid) throw UserError(valid.error().message);
  s.url = parse_url(traces_url(s.config.endpoint)).value();
  ClientOptions options;
  options.body_bytes_max = kAnswerBytesMax;
  options.ca_file = s.config.ca_file;
  s.client = std::make_unique<HttpClient>(s.executor, std::move(options));
  s.tracer.enable(true);
  co_return;
}

Task<void> OtlpExporter::run() {
  auto& s = *state_;
  std::vector<SpanRecord> batch;
  auto sent_at = std::chrono::steady_clock::now();
  while (!s.stop_asked.is_set()) {
    co_await s.stop_asked.wait_for(kLookInterval);
    while (!s.flush_until || !s.flush_until->passed()) {
      auto more = s.tracer.take(kBatchSpans - batch.size());
      std::move(more.begin(), more.end(), std::back_inserter(batch));
      const bool full = batch.size() >= kBatchSpans;
      const bool due = std::chrono::steady_clock::now() - sent_at >= kBatchInterval || s.stop_asked.is_set();
      if (batch.empty() || !(full || due)) break;
      co_await s.send(std::move(batch), s.flush_until.value_or(Deadline::after(kSendTimeout)));
      batch.clear();
      sent_at = std::chrono::steady_clock::now();
    }
  }
  s.tracer.enable(false);
}

void OtlpExporter::stop() {
  state_->flush_until = Deadline::after(kFlushTimeout);
  state_->stop_asked.set();
}

Task<void> OtlpExporter::State::send(std::vector<SpanRecord> spans, Deadline deadline) {
  ClientRequest request;
  request.method = "POST";
  request.url = url;
  request.headers.add("Content-Type", "application/json");
  request.body = otlp_json(spans, config.service_version);
  request.repeatable = true;  // a collector that sees a span twice keeps one
  std::string why;
  try {
    const auto response = co_await client->send(std::move(request), deadline);
    if (response.status < 200 || response.status > 299)
      why = fmt::format("the collector answered {}", response.status);
  } catch (const NetError& error) {
    why = error.what();
  }
  if (why.empty()) co_return;
  tracer.count_dropped(spans.size());
  complain(why, spans.size());
}

void OtlpExporter::State::complain(std::string_view why, std::size_t spans) {
  const auto now = std::chrono::steady_clock::now();
  if (complained_at != SteadyTime{} && now - complained_at < kComplaintInterval) return;
  complained_at = now;
  log::warning("trace", "spans dropped: the collector could not be reached; told once a minute",
               {{"endpoint", config.endpoint}, {"error", why}, {"spans", spans}});
}

}  // namespace todoke::net
