// What an event becomes in the index. Pure: the same event gives the same document.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "index/ts_vector.hpp"
#include "outbox/consumer.hpp"

namespace todoke::index {

// Notes, comments and long texts.
inline constexpr std::array<std::int32_t, 3> kIndexedKinds{1, 1111, 30023};
constexpr bool is_indexed(std::int32_t kind) {
  return kind == kIndexedKinds[0] || kind == kIndexedKinds[1] || kind == kIndexedKinds[2];
}

// What is shown of a long text in a list of results; more is cut at a character.
inline constexpr std::size_t kTitleBytesMax = 300;
inline constexpr std::size_t kSummaryBytesMax = 1'000;

struct Document {
  std::string event_id;
  std::string pubkey;
  std::int32_t kind = 0;
  std::int64_t created_at = 0;
  SystemTime ingested_at{};
  std::vector<std::string> topics;
  TsVector tokens;
  std::optional<std::string> title;  // of kind 30023, without control characters
  std::optional<std::string> summary;
  std::vector<std::int64_t> tags;  // document_tags.hpp
};

// Whether the event is one to be found by everybody, now: an indexed kind, public by its column and by its
// tags, in effect.
bool is_public_post(const outbox::LoggedEvent& event);

// Of an event for which is_public_post is true.
Document document_of(std::string_view event_id, SystemTime ingested_at, const outbox::LoggedEvent& event);

}  // namespace todoke::index
