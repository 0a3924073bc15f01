// The newest events of busy topics, in memory: most REQs ask for these. A window of a topic holds every event
// in effect that is newer than its floor; it is filled from the store once and kept up with the log. Not
// thread-safe.
//
// Bounded: `topics_max` windows (the one unused for longest goes), `events_max` events in a window,
// `bytes_max` of JSON in all; 0 keeps nothing. `fill_bytes_max` bounds what is read to fill a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "nostr/filter.hpp"
#include "relay/reader.hpp"
#include "relay/store.hpp"
#include "relay/stored_page.hpp"

namespace todoke::relay {

struct CacheLimits {
  std::size_t topics_max = 256;
  std::size_t events_max = 1'000;
  std::size_t bytes_max = 64 * 1024 * 1024;
  std::size_t fill_bytes_max = 4 * 1024 * 1024;  // twice what a REQ gets
};

class RecentCache {
 public:
  explicit RecentCache(CacheLimits limits) : limits_(limits) {}

  // What the log says. Events come in the order of seq.
  void add(const LiveEventPtr& live);
  void remove(const Gone& gone);

  // Adds what a filter asks for, of what the log has named up to `head`, to the page. False: the windows
  // can't tell, and the page is good for nothing.
  bool find(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
            std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page);

  // Whether a window for the topic is worth filling now: it is asked for and not there. begin_fill gives a
  // number, which must be followed by fill or forget with it. The window may be dropped and begun anew
  // meanwhile: what was read for the first one knows nothing of what went before the second one, and is
  // ignored.
  bool wants(const std::string& topic) const;
  std::uint64_t begin_fill(const std::string& topic);
  void fill(const std::string& topic, std::uint64_t number, ReadResult newest);
  void forget(const std::string& topic, std::uint64_t number);
  void clear();

  [[nodiscard]] const CacheLimits& limits() const { return limits_; }

 private:
  struct Window {
    std::vector<LiveEventPtr> events;  // oldest first
    bool complete = false;             // nothing older exists
    std::size_t events_when_cut = 0;   // if it is not complete
    bool filled = false;
    std::uint64_t number = 0;        // of its begin_fill
    std::vector<LiveEventPtr> came;  // while it was being filled
    HashSet<nostr::EventId> went;    // likewise
    std::list<std::string>::iterator used;
    std::size_t bytes = 0;
  };

  void insert(Window& window, LiveEventPtr live);
  void trim(Window& window);
  void drop(HashMap<std::string, Window>::iterator window);
  void make_room();

  CacheLimits limits_;
  HashMap<std::string, Window> windows_;
  std::list<std::string> by_use_;  // the most recently used first
  std::size_t bytes_ = 0;
  std::uint64_t fills_ = 0;
};

}  // namespace todoke::relay
