// The newest events that many ask for, in memory. A window of a topic holds every event in effect that is
// newer than its floor; it is filled from the store once and kept up with the log. A plain relay (policy
// open) has windows by `t` tag, by author, by kind and of all events; they are many, so one is filled when it
// is asked for the second time. What stands in a window is found by its id as well. Not thread-safe.
//
// A window of few has as many events as a window of many, so it reaches further back: the narrowest one that
// is there answers, or none does.
//
// Bounded: `windows_max` windows (the one unused for longest goes), `events_max` events in a window,
// `bytes_max` of JSON in all, where an event counts once; 0 keeps nothing. `fill_bytes_max` bounds what is
// read to fill a window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "nostr/filter.hpp"
#include "nostr/rules.hpp"
#include "relay/reader.hpp"
#include "relay/store.hpp"
#include "relay/stored_page.hpp"

namespace todoke::relay {

struct CacheLimits {
  std::size_t windows_max = 256;
  std::size_t events_max = 1'000;
  std::size_t bytes_max = 64 * 1024 * 1024;
  std::size_t fill_bytes_max = 4 * 1024 * 1024;  // twice what a REQ gets
};

class RecentCache {
 public:
  RecentCache(CacheLimits limits, nostr::TopicPolicy policy) : limits_(limits), policy_(policy) {}

  // What the log says. Events come in the order of seq.
  void add(const LiveEventPtr& live);
  void remove(const Gone& gone);

  // Adds what a filter asks for, of what the log has named up to `head`, to the page. False: the windows
  // can't tell, and the page is good for nothing.
  bool find(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
            std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page);

  // The window that is worth filling for a filter that the windows could not answer, named by the filter that
  // asks for all that it holds. begin_fill gives a number, which must be followed by fill or forget with it.
  // The window may be dropped and begun anew meanwhile: what was read for the first one knows nothing of what
  // went before the second one, and is ignored.
  std::optional<nostr::Filter> wants(const nostr::Filter& filter);
  std::uint64_t begin_fill(const nostr::Filter& window);
  void fill(const nostr::Filter& window, std::uint64_t number, ReadResult newest);
  void forget(const nostr::Filter& window, std::uint64_t number);
  // Drops the windows that hold an event up to this seq, and those that are being filled: events up to there
  // were purged, and nobody says which. Costs a look at every event in memory.
  void forget_up_to(nostr::Seq seq);
  // Drops the window of a topic: events that are stored already were linked to it.
  void forget_topic(const std::string& topic);
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
  };
  using Windows = HashMap<std::string, Window>;
  struct Held {
    LiveEventPtr live;
    std::size_t windows = 0;  // that hold it
  };

  // Those that hold all that a filter asks for, the narrowest first.
  [[nodiscard]] std::vector<nostr::Filter> windows_of(const nostr::Filter& filter) const;
  [[nodiscard]] std::vector<std::string> names_of(const LiveEvent& live) const;
  Windows::iterator find_window(const nostr::Filter& filter);
  bool find_ids(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
                std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page) const;
  bool was_asked_for(const std::string& name);
  // Gives the copy that all windows share.
  LiveEventPtr hold(LiveEventPtr live);
  void let_go(const LiveEvent& live);
  void insert(Window& window, LiveEventPtr live);
  void trim(Window& window);
  void drop(Windows::iterator window);
  void make_room();

  // Of names that were asked for lately, a hash each; one takes the place of another.
  static constexpr std::size_t kAskedMax = 1'024;

  CacheLimits limits_;
  const nostr::TopicPolicy policy_;
  Windows windows_;
  std::list<std::string> by_use_;  // the most recently used first
  HashMap<nostr::EventId, Held> held_;
  std::array<std::uint64_t, kAskedMax> asked_{};
  std::size_t bytes_ = 0;
  std::uint64_t fills_ = 0;
};

}  // namespace todoke::relay
