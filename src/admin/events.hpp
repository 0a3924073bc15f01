// GET events/stream: what changed, as Server-Sent Events, so that a page asks only when there is something
// new. An event names what changed (`requests`, `topics`, `config`, …) and holds no data: the page reads the
// list again. A change that comes while the last one has not been sent is part of it.
//
// Bounded: kStreamsMax at a time; each ends after kStreamMax, and the browser connects again, with the rights
// that it has then.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/message.hpp"
#include "pg/listener.hpp"

namespace todoke::admin {

struct ChangeSource {
  std::string_view channel;
  std::string_view event;
};
const std::vector<ChangeSource>& change_sources();

class EventStreams {
 public:
  static constexpr std::size_t kStreamsMax = 32;
  static constexpr std::chrono::minutes kStreamMax{5};

  // `executor`: of the listener's connections.
  EventStreams(Executor executor, pg::Listener& listener);

  // Null: there are as many as may be.
  std::shared_ptr<net::BodyStream> open();

 private:
  class Stream;

  const Executor executor_;
  pg::Listener& listener_;
  std::shared_ptr<std::atomic<std::size_t>> open_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace todoke::admin
