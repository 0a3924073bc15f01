#include "admin/events.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "admin/routes.hpp"
#include "api/answers.hpp"
#include "pg/channels.hpp"

namespace todoke::admin {
namespace {

// Proxies close what is silent for a minute.
constexpr std::chrono::seconds kSilenceMax(15);

}  // namespace

const std::vector<ChangeSource>& change_sources() {
  namespace channels = pg::channels;
  static const std::vector<ChangeSource> kSources{{channels::kRequests, "requests"},
                                                  {channels::kTopics, "topics"},
                                                  {channels::kConfig, "config"},
                                                  {channels::kRights, "users"},
                                                  {channels::kBlocks, "blocks"},
                                                  {channels::kJobs, "jobs"},
                                                  {channels::kAudit, "audit"},
                                                  {channels::kOrdersHalts, "halts"},
                                                  {channels::kOrdersSettled, "orders"},
                                                  {channels::kOrdersPending, "orders"},
                                                  {channels::kKeys, "keys"}};
  return kSources;
}

// The callbacks come on the listener's loop, next() on the connection's: what both touch is locked.
class EventStreams::Stream final : public net::BodyStream {
 public:
  Stream(const Executor& executor, pg::Listener& listener, std::shared_ptr<std::atomic<std::size_t>> open)
      : state_(std::make_shared<State>(executor)),
        open_(std::move(open)),
        ends_(Deadline::after(kStreamMax)) {
    for (const auto& source : change_sources()) {
      subscriptions_.push_back(listener.subscribe(
          source.channel, [state = state_, event = source.event](const pg::Wake&) { state->add(event); }));
    }
  }
  ~Stream() override { --*open_; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Task<std::optional<std::string>> next() override {
    if (!greeted_) {
      greeted_ = true;
      co_return "retry: 1000\n\n";
    }
    if (state_->stopped || ends_.passed()) co_return std::nullopt;
    const bool woken = co_await state_->wake.wait_for(kSilenceMax);
    if (state_->stopped) co_return std::nullopt;
    co_return woken ? state_->take() : std::string(": still here\n\n");
  }
  void stop() override {
    state_->stopped = true;
    state_->wake.set_from_anywhere();
  }

 private:
  struct State {
    explicit State(const Executor& executor) : wake(executor) {}

    void add(std::string_view event) {
      const std::lock_guard lock(mutex);
      const auto text = std::string(event);
      if (std::find(changed.begin(), changed.end(), text) == changed.end()) changed.push_back(text);
      wake.set_from_anywhere();
    }
    std::string take() {
      const std::lock_guard lock(mutex);
      wake.reset();
      std::string text;
      for (const auto& event : std::exchange(changed, {}))
        text += fmt::format("event: {}\ndata: {{}}\n\n", event);
      return text;
    }

    Signal wake;
    std::atomic<bool> stopped = false;
    std::mutex mutex;
    std::vector<std::string> changed;  // each once
  };

  const std::shared_ptr<State> state_;
  const std::shared_ptr<std::atomic<std::size_t>> open_;
  const Deadline ends_;
  std::vector<pg::Listener::Subscription> subscriptions_;
  bool greeted_ = false;
};

EventStreams::EventStreams(Executor executor, pg::Listener& listener)
    : executor_(std::move(executor)), listener_(listener) {}

std::shared_ptr<net::BodyStream> EventStreams::open() {
  if (++*open_ > kStreamsMax) {
    --*open_;
    return nullptr;
  }
  return std::make_shared<Stream>(executor_, listener_, open_);
}

Routes event_routes(Desk& desk) {
  const auto streams = std::make_shared<EventStreams>(desk.executor, desk.listener);
  auto route =
      read_route(desk, {"/events/stream", "streamEvents", "events", "What changed, as Server-Sent Events."},
                 {}, [streams](Desk&, const api::Call&) -> Task<net::Response> {
                   net::Response response;
                   response.stream = streams->open();
                   if (response.stream == nullptr)
                     co_return api::unavailable("too many pages follow what changes");
                   response.headers.set("Content-Type", "text/event-stream");
                   response.headers.set("Cache-Control", "no-store");
                   co_return response;
                 });
  route.answers = {
      {.status = 200, .meaning = "The stream.", .body = {}, .content_type = "text/event-stream"}};
  return {route};
}

}  // namespace todoke::admin
