// Set reconciliation: two sides with a set of events each find out which ids the other lacks, at a cost that
// grows with the difference and not with the sets (negentropy V1, the protocol of NIP-77). Pure.
//
// A message is a run of ranges that cover the whole of (created_at, id). For each the sender says a
// fingerprint of what it has there, or all of its ids, or that there is nothing to do. The receiver compares:
// where fingerprints differ it answers with the range in sixteen pieces, or, when it has fewer than 32 there,
// with its ids. The client, who began, learns what either side lacks; the server keeps nothing but its set
// between two messages.
//
//   client: open() ──▶ answer() ──▶ take() ──▶ answer() ──▶ … ──▶ take(): nothing left to ask
//
// Bounded: a message that is sent has at most the bytes that its caller allows; what does not fit is named by
// one fingerprint and comes in the next round. Reading a message keeps nothing of it but the ids that the
// client lacks, of which it takes as many as its caller allows. A set takes 40.5 bytes an event. A message
// costs what its ranges cost: a look-up each, and for a fingerprint the sum of 128 ids and a hash, whatever
// the range; one of 128 KiB some 20 ms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "nostr/ids.hpp"

namespace todoke::nostr {

// What a set knows of an event.
struct NegItem {
  std::int64_t created_at;  // one before 1970 counts as 0
  EventId id;
  friend auto operator<=>(const NegItem&, const NegItem&) = default;
};

// The end of a range: before the first event that has this time and an id from this prefix on.
struct NegBound {
  static constexpr std::uint64_t kForever = UINT64_MAX;
  std::uint64_t time = kForever;
  std::size_t prefix_bytes = 0;
  EventId::Bytes prefix{};  // filled up with zeros
};

using NegFingerprint = std::array<std::uint8_t, 16>;

// The events of one side. Never changes.
class NegSet {
 public:
  NegSet() : NegSet(std::vector<NegItem>()) {}
  // In any order, also with equal ones. Linear where they come in the order of a REQ, newest first.
  explicit NegSet(std::vector<NegItem> items);

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const NegItem& at(std::size_t index) const { return items_[index]; }
  // The first one from `from` on that does not come before the bound.
  [[nodiscard]] std::size_t lower_bound(std::size_t from, const NegBound& bound) const;
  // Of those from `from` to before `to`.
  [[nodiscard]] NegFingerprint fingerprint(std::size_t from, std::size_t to) const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  // Ids as numbers of 256 bits, added up without the overflow.
  using Sum = std::array<std::uint64_t, 4>;
  static constexpr std::size_t kSumEvery = 64;
  static void add(Sum& sum, const EventId& id);
  [[nodiscard]] Sum sum_before(std::size_t end) const;

  std::vector<NegItem> items_;
  std::vector<Sum> sums_;  // of all before every kSumEvery-th
};

// Why a message can't be taken; the other side is broken or hostile.
enum class NegFault : std::uint8_t {
  truncated,      // it ends too early, or has a number that fits nowhere
  version,        // not of this protocol, or of a version that is unknown here
  mode,           // a range of an unknown kind
  wrong_order,    // a range ends before it begins
  too_many_ids,   // the client lacks more than it takes
  endless_rounds  // the client has asked too often
};
std::string_view text_of(NegFault fault);

// The least that a message may have. Sixteen pieces of a range, or the ids of a small one, take 1.1 KiB.
inline constexpr std::size_t kNegMessageBytesMin = 4'096;

// The server's answer, at most so many bytes.
tl::expected<std::string, NegFault> neg_answer(const NegSet& set, std::string_view message,
                                               std::size_t message_bytes_max);

class NegClient {
 public:
  // Of a difference of a million ids 600 rounds tell; more than this is no honest server.
  static constexpr std::size_t kRoundsMax = 20'000;

  struct Limits {
    std::size_t message_bytes_max = 60'000;
    std::size_t need_max = 1'000'000;
  };

  NegClient(const NegSet& set, Limits limits);

  // The first message.
  [[nodiscard]] std::string open() const;
  // Reads an answer and gives the next message; nothing when all is known.
  tl::expected<std::optional<std::string>, NegFault> take(std::string_view answer);

  // What the server lacks, each once, and what the client lacks, of a hostile server also twice; so far.
  [[nodiscard]] const std::vector<EventId>& have() const { return have_; }
  [[nodiscard]] const std::vector<EventId>& need() const { return need_; }

 private:
  const NegSet& set_;
  const Limits limits_;
  std::size_t rounds_ = 0;
  std::vector<bool> told_;  // of the set: stands in have_
  std::vector<EventId> have_;
  std::vector<EventId> need_;
};

}  // namespace todoke::nostr
