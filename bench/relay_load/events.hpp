// Events that are signed and framed before any clock starts. Signing costs about 50 us an event and is spread
// over the processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nostr/signature.hpp"

namespace todoke::bench {

// Ready frames `["EVENT",{...}]` and where to find an event by its id. Holds about 600 bytes an event.
class EventSet {
 public:
  // Each frame with the id of its event.
  struct Framed {
    std::string frame;
    std::string id;
  };
  explicit EventSet(std::vector<Framed> events);
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  [[nodiscard]] std::size_t size() const { return events_.size(); }
  [[nodiscard]] std::string_view frame(std::size_t i) const { return events_[i].frame; }
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view id) const;

 private:
  std::vector<Framed> events_;
  std::unordered_map<std::string_view, std::size_t> by_id_;
};

// Makes events of kind 1 with one `t` tag, by a handful of authors in turn, no two alike.
class EventMaker {
 public:
  EventMaker(std::string topic, std::size_t event_bytes);

  EventSet make(std::size_t count);
  // Of another kind (7) and an author of their own, older than all others.
  EventSet make_rare(std::size_t count);
  // A hundred to a second, backwards in time; `first` is the place of the first of them.
  EventSet make_spread(std::size_t count, std::size_t first);
  static std::int64_t time_of_spread(std::size_t place);
  // One of the authors: every kAuthors-th event is of this one.
  [[nodiscard]] std::string author_hex() const { return authors_.front().pubkey().hex(); }
  [[nodiscard]] std::string rare_author_hex() const { return rare_author_.pubkey().hex(); }

  static constexpr std::size_t kAuthors = 10;

 private:
  struct Draft {
    std::int64_t created_at;
    nostr::Kind kind;
    const nostr::SecretKey* author;
  };
  template <class DraftOf>
  EventSet make_all(std::size_t count, const DraftOf& draft_of);
  [[nodiscard]] const nostr::SecretKey& author_of(std::uint64_t number) const {
    return authors_[number % kAuthors];
  }
  [[nodiscard]] EventSet::Framed make_one(std::uint64_t number, const Draft& draft) const;
  [[nodiscard]] std::string content(std::uint64_t number) const;

  std::string topic_;
  std::string run_;  // random: what another run sent is never the same
  std::size_t content_bytes_ = 0;
  std::vector<nostr::SecretKey> authors_;
  nostr::SecretKey rare_author_ = nostr::SecretKey::generate();
  std::uint64_t next_ = 0;
};

}  // namespace todoke::bench
