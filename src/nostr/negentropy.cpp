#include "nostr/negentropy.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/sha256.hpp"

namespace todoke::nostr {
namespace {

using NegRead = tl::expected<void, NegFault>;

constexpr std::uint8_t kNegVersion = 0x61;
constexpr std::uint8_t kNegVersionsFirst = 0x60;
constexpr std::uint8_t kNegVersionsLast = 0x6f;

// As the protocol numbers them.
constexpr std::uint64_t kNegSkip = 0;
constexpr std::uint64_t kNegFingerprint = 1;
constexpr std::uint64_t kNegIds = 2;

constexpr std::size_t kNegPieces = 16;
// Fewer are told by their ids.
constexpr std::size_t kNegSplitMin = 2 * kNegPieces;
// What is kept free at the end of a message: a skipped range, and a fingerprint of all that is left.
constexpr std::size_t kNegTailBytes = 256;
// A range in pieces, each with its bound (a time, a length, 32 bytes), mode and fingerprint; or ids with
// their bound.
constexpr std::size_t kNegRangeBytes = 1'400;
static_assert(kNegMessageBytesMin > kNegTailBytes + kNegRangeBytes);

std::uint64_t time_of(const NegItem& item) {
  return static_cast<std::uint64_t>(item.created_at);
}

bool is_before(const NegItem& item, const NegBound& bound) {
  const auto time = time_of(item);
  if (time != bound.time) return time < bound.time;
  return std::memcmp(item.id.bytes().data(), bound.prefix.data(), EventId::kSize) < 0;
}

bool is_before(const NegBound& a, const NegBound& b) {
  if (a.time != b.time) return a.time < b.time;
  return a.prefix < b.prefix;
}

// The shortest bound between two neighbours.
NegBound bound_between(const NegItem& before, const NegItem& after) {
  NegBound bound{time_of(after), 0, {}};
  if (time_of(before) != bound.time) return bound;
  const auto& a = before.id.bytes();
  const auto& b = after.id.bytes();
  while (bound.prefix_bytes < EventId::kSize && a[bound.prefix_bytes] == b[bound.prefix_bytes]) {
    bound.prefix[bound.prefix_bytes] = b[bound.prefix_bytes];
    ++bound.prefix_bytes;
  }
  if (bound.prefix_bytes < EventId::kSize) {
    bound.prefix[bound.prefix_bytes] = b[bound.prefix_bytes];
    ++bound.prefix_bytes;
  }
  return bound;
}

NegBound bound_at(const NegItem& item) {
  return {time_of(item), EventId::kSize, item.id.bytes()};
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 10> digits{};
  auto first = digits.size();
  digits[--first] = static_cast<char>(number & 0x7f);
  while ((number >>= 7) > 0) digits[--first] = static_cast<char>((number & 0x7f) | 0x80);
  out.append(digits.data() + first, digits.size() - first);
}

template <class Bytes>
void append_bytes(std::string& out, const Bytes& bytes, std::size_t count) {
  out.append(reinterpret_cast<const char*>(bytes.data()), count);
}

// A message that came, from front to back.
class NegReading {
 public:
  explicit NegReading(std::string_view message) : rest_(message) {}

  [[nodiscard]] bool ended() const { return rest_.empty(); }

  std::optional<std::string_view> bytes(std::uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const auto taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::optional<std::uint64_t> number() {
    std::uint64_t number = 0;
    while (!rest_.empty()) {
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      if (number > UINT64_MAX >> 7) return std::nullopt;
      number = number << 7 | (byte & 0x7f);
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }

  std::optional<NegBound> bound() {
    const auto offset = number();
    const auto length = number();
    if (!offset || !length || *length > EventId::kSize) return std::nullopt;
    const auto prefix = bytes(*length);
    if (!prefix) return std::nullopt;
    NegBound bound;
    // 0 stands for the end of time; so does what goes beyond it.
    if (*offset > 0 && *offset - 1 < NegBound::kForever - time_) bound.time = time_ + (*offset - 1);
    time_ = bound.time;
    bound.prefix_bytes = prefix->size();
    std::copy(prefix->begin(), prefix->end(), bound.prefix.begin());
    return bound;
  }

 private:
  std::string_view rest_;
  std::uint64_t time_ = 0;  // of the bound before
};

// A message that is made, from front to back.
class NegWriting {
 public:
  explicit NegWriting(std::size_t bytes_max) : bytes_max_(std::max(bytes_max, kNegMessageBytesMin)) {
    out_ += static_cast<char>(kNegVersion);
  }

  [[nodiscard]] bool has_room_for(std::size_t bytes) const {
    return out_.size() + bytes + kNegTailBytes <= bytes_max_;
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }

  // There is nothing to do up to here. Written only when something follows: the end of a message says the
  // same.
  void skip_to(const NegBound& end) { skipped_ = end; }

  void fingerprint(const NegBound& end, const NegFingerprint& fingerprint) {
    range(end, kNegFingerprint);
    append_bytes(out_, fingerprint, fingerprint.size());
  }

  void ids(const NegSet& set, std::size_t from, std::size_t to, const NegBound& end) {
    range(end, kNegIds);
    append_number(out_, to - from);
    for (auto i = from; i < to; ++i) append_bytes(out_, set.at(i).id.bytes(), EventId::kSize);
  }

  std::string finish() { return std::move(out_); }

 private:
  void range(const NegBound& end, std::uint64_t mode) {
    if (const auto skipped = std::exchange(skipped_, std::nullopt)) {
      bound(*skipped);
      append_number(out_, kNegSkip);
    }
    bound(end);
    append_number(out_, mode);
  }

  void bound(const NegBound& bound) {
    append_number(out_, bound.time == NegBound::kForever ? 0 : bound.time - time_ + 1);
    time_ = bound.time;
    append_number(out_, bound.prefix_bytes);
    append_bytes(out_, bound.prefix, bound.prefix_bytes);
  }

  const std::size_t bytes_max_;
  std::string out_;
  std::uint64_t time_ = 0;  // of the bound before
  std::optional<NegBound> skipped_;
};

// A range that differs: in pieces, or by its ids.
void write_difference(NegWriting& out, const NegSet& set, std::size_t from, std::size_t to,
                      const NegBound& end) {
  const auto count = to - from;
  if (count < kNegSplitMin) return out.ids(set, from, to, end);
  for (std::size_t piece = 0; piece < kNegPieces; ++piece) {
    const auto next = from + count / kNegPieces + (piece < count % kNegPieces ? 1 : 0);
    const auto bound = next == to ? end : bound_between(set.at(next - 1), set.at(next));
    out.fingerprint(bound, set.fingerprint(from, next));
    from = next;
  }
}

// What the two sides do otherwise when the other one names its ids in a range. Gives where in the set it
// stopped: before `to` where the message has no more room.
using OnIds = std::function<tl::expected<std::size_t, NegFault>(
    NegWriting& out, std::string_view ids, std::size_t from, std::size_t to, const NegBound& end)>;

// Reads the ranges of a message, after its version, and answers each.
NegRead answer_ranges(NegReading& in, NegWriting& out, const NegSet& set, const OnIds& on_ids) {
  NegBound begin{0, 0, {}};
  std::size_t from = 0;
  while (!in.ended()) {
    const auto end = in.bound();
    const auto mode = in.number();
    if (!end || !mode) return tl::unexpected(NegFault::truncated);
    if (is_before(*end, begin)) return tl::unexpected(NegFault::wrong_order);
    const auto to = set.lower_bound(from, *end);
    auto reached = to;
    if (*mode == kNegSkip) {
      out.skip_to(*end);
    } else if (*mode == kNegFingerprint) {
      const auto theirs = in.bytes(sizeof(NegFingerprint));
      if (!theirs) return tl::unexpected(NegFault::truncated);
      const auto ours = set.fingerprint(from, to);
      if (std::memcmp(ours.data(), theirs->data(), ours.size()) == 0) {
        out.skip_to(*end);
      } else if (out.has_room_for(kNegRangeBytes)) {
        write_difference(out, set, from, to, *end);
      } else {
        out.fingerprint(NegBound{}, set.fingerprint(from, set.size()));
        return {};
      }
    } else if (*mode == kNegIds) {
      const auto count = in.number();
      if (!count || *count > SIZE_MAX / EventId::kSize) return tl::unexpected(NegFault::truncated);
      const auto ids = in.bytes(*count * EventId::kSize);
      if (!ids) return tl::unexpected(NegFault::truncated);
      const auto stopped = on_ids(out, *ids, from, to, *end);
      if (!stopped) return tl::unexpected(stopped.error());
      reached = *stopped;
    } else {
      return tl::unexpected(NegFault::mode);
    }
    if (reached < to) {
      out.fingerprint(NegBound{}, set.fingerprint(reached, set.size()));
      return {};
    }
    from = to;
    begin = *end;
  }
  return {};
}

// All that the server has in the range, as far as there is room.
std::size_t write_ids(NegWriting& out, const NegSet& set, std::size_t from, std::size_t to,
                      const NegBound& end) {
  std::size_t fits = from;
  std::size_t bytes = kNegTailBytes;  // its own bound and number, and a skipped range
  while (fits < to && out.has_room_for(bytes + EventId::kSize)) {
    bytes += EventId::kSize;
    ++fits;
  }
  out.ids(set, from, fits, fits == to ? end : bound_at(set.at(fits)));
  return fits;
}

std::vector<EventId> sorted_ids(std::string_view bytes) {
  std::vector<EventId> ids;
  ids.reserve(bytes.size() / EventId::kSize);
  for (std::size_t at = 0; at < bytes.size(); at += EventId::kSize) {
    EventId::Bytes id{};
    std::memcpy(id.data(), bytes.data() + at, EventId::kSize);
    ids.emplace_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// From newest first, as REQs and indexes have them, to the protocol's order; anything else is sorted.
void put_in_order(std::vector<NegItem>& items) {
  if (std::is_sorted(items.begin(), items.end())) return;
  std::reverse(items.begin(), items.end());
  for (auto at = items.begin(); at != items.end();) {
    const auto next =
        std::find_if(at, items.end(), [&](const NegItem& item) { return item.created_at != at->created_at; });
    std::reverse(at, next);
    at = next;
  }
  if (!std::is_sorted(items.begin(), items.end())) std::sort(items.begin(), items.end());
}

}  // namespace

NegSet::NegSet(std::vector<NegItem> items) : items_(std::move(items)) {
  for (auto& item : items_) item.created_at = std::max<std::int64_t>(item.created_at, 0);
  put_in_order(items_);
  items_.erase(std::unique(items_.begin(), items_.end()), items_.end());
  sums_.reserve(items_.size() / kSumEvery + 1);
  Sum sum{};
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i % kSumEvery == 0) sums_.push_back(sum);
    add(sum, items_[i].id);
  }
  if (items_.size() % kSumEvery == 0) sums_.push_back(sum);
}

std::size_t NegSet::lower_bound(std::size_t from, const NegBound& bound) const {
  const auto first = items_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto found =
      std::lower_bound(first, items_.end(), bound,
                       [](const NegItem& item, const NegBound& end) { return is_before(item, end); });
  return static_cast<std::size_t>(found - items_.begin());
}

void NegSet::add(Sum& sum, const EventId& id) {
  const auto& bytes = id.bytes();
  std::uint64_t carry = 0;
  for (std::size_t limb = 0; limb < sum.size(); ++limb) {
    std::uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;) word = word << 8 | bytes[8 * limb + i];
    const auto with_carry = word + carry;
    sum[limb] += with_carry;
    carry =
        static_cast<std::uint64_t>(with_carry < word) + static_cast<std::uint64_t>(sum[limb] < with_carry);
  }
}

NegSet::Sum NegSet::sum_before(std::size_t end) const {
  auto sum = sums_[end / kSumEvery];
  for (auto i = end - end % kSumEvery; i < end; ++i) add(sum, items_[i].id);
  return sum;
}

NegFingerprint NegSet::fingerprint(std::size_t from, std::size_t to) const {
  const auto before = sum_before(from);
  auto sum = sum_before(to);
  std::uint64_t borrow = 0;
  std::string text;
  for (std::size_t limb = 0; limb < sum.size(); ++limb) {
    const auto less = before[limb] + borrow;
    // Where adding the borrow overflows, everything is taken away and the borrow stays.
    const bool overflows = less < borrow;
    borrow = static_cast<std::uint64_t>(overflows || sum[limb] < less);
    sum[limb] -= less;
    for (unsigned shift = 0; shift < 64; shift += 8) text += static_cast<char>(sum[limb] >> shift & 0xff);
  }
  append_number(text, to - from);
  const auto hash = sha256({text});
  NegFingerprint fingerprint{};
  std::copy_n(hash.begin(), fingerprint.size(), fingerprint.begin());
  return fingerprint;
}

std::size_t NegSet::bytes() const {
  return items_.capacity() * sizeof(NegItem) + sums_.capacity() * sizeof(Sum);
}

std::string_view text_of(NegFault fault) {
  switch (fault) {
    case NegFault::truncated:
      return "message is cut off";
    case NegFault::version:
      return "unknown version of negentropy";
    case NegFault::mode:
      return "unknown kind of range";
    case NegFault::wrong_order:
      return "ranges out of order";
    case NegFault::too_many_ids:
      return "too many ids";
    case NegFault::endless_rounds:
      return "too many rounds";
  }
  return "";
}

tl::expected<std::string, NegFault> neg_answer(const NegSet& set, std::string_view message,
                                               std::size_t message_bytes_max) {
  NegReading in(message);
  NegWriting out(message_bytes_max);
  const auto version = in.bytes(1);
  if (!version) return tl::unexpected(NegFault::truncated);
  const auto number = static_cast<std::uint8_t>(version->front());
  if (number < kNegVersionsFirst || number > kNegVersionsLast) return tl::unexpected(NegFault::version);
  // The client learns from this which version is spoken here.
  if (number != kNegVersion) return out.finish();
  const auto read = answer_ranges(
      in, out, set,
      [&](NegWriting& to_write, std::string_view, std::size_t from, std::size_t to, const NegBound& end) {
        return tl::expected<std::size_t, NegFault>(write_ids(to_write, set, from, to, end));
      });
  if (!read) return tl::unexpected(read.error());
  return out.finish();
}

NegClient::NegClient(const NegSet& set, Limits limits) : set_(set), limits_(limits), told_(set.size()) {}

std::string NegClient::open() const {
  NegWriting out(limits_.message_bytes_max);
  write_difference(out, set_, 0, set_.size(), NegBound{});
  return out.finish();
}

tl::expected<std::optional<std::string>, NegFault> NegClient::take(std::string_view answer) {
  if (++rounds_ > kRoundsMax) return tl::unexpected(NegFault::endless_rounds);
  NegReading in(answer);
  NegWriting out(limits_.message_bytes_max);
  const auto version = in.bytes(1);
  if (!version) return tl::unexpected(NegFault::truncated);
  if (static_cast<std::uint8_t>(version->front()) != kNegVersion) return tl::unexpected(NegFault::version);
  const auto nothing = out.size();
  const auto read =
      answer_ranges(in, out, set_,
                    [&](NegWriting& to_write, std::string_view bytes, std::size_t from, std::size_t to,
                        const NegBound& end) -> tl::expected<std::size_t, NegFault> {
                      auto theirs = sorted_ids(bytes);
                      std::vector<bool> known(theirs.size());
                      for (auto i = from; i < to; ++i) {
                        const auto found = std::lower_bound(theirs.begin(), theirs.end(), set_.at(i).id);
                        if (found != theirs.end() && *found == set_.at(i).id) {
                          known[static_cast<std::size_t>(found - theirs.begin())] = true;
                        } else if (!told_[i]) {
                          told_[i] = true;
                          have_.push_back(set_.at(i).id);
                        }
                      }
                      for (std::size_t i = 0; i < theirs.size(); ++i) {
                        if (known[i]) continue;
                        if (need_.size() >= limits_.need_max) return tl::unexpected(NegFault::too_many_ids);
                        need_.push_back(theirs[i]);
                      }
                      to_write.skip_to(end);
                      return to;
                    });
  if (!read) return tl::unexpected(read.error());
  if (out.size() == nothing) return std::nullopt;
  return out.finish();
}

}  // namespace todoke::nostr
