// A subscriber that writes down every event it gets, in order. What comes between two calls waits in the
// connection: a few megabytes.
#pragma once

#include <string>
#include <vector>

#include "harness/nostr_client.hpp"

namespace todoke::test {

// A filter for what comes from now on, nothing stored.
inline constexpr const char* kOnlyLive = R"({"#t":["kukuri:global"],"limit":0})";

class LiveSubscriber {
 public:
  // Subscribes, and returns when the stored events have come; they are the first in the list. `filter` is a
  // JSON object.
  LiveSubscriber(const std::string& url, const std::string& filter);

  // Reads on until this event has come: what the log named before has come as well then.
  void wait_for(const std::string& id);
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }

 private:
  NostrClient client_;
  std::vector<std::string> ids_;
};

}  // namespace todoke::test
