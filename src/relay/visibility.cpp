#include "relay/visibility.hpp"

#include "nostr/recipients.hpp"

namespace todoke::relay {

bool is_visible(const LiveEvent& live, const Viewer& viewer, std::chrono::sys_seconds now) {
  if (is_over(live, now)) return false;
  if (viewer.sees_all) return true;
  if (live.non_public && !viewer.is_authenticated()) return false;
  return !nostr::is_private(live.event->kind()) || nostr::is_party(*live.event, viewer.keys);
}

}  // namespace todoke::relay
