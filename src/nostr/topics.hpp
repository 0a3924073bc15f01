// Topics: what counts as a topic id, how a name becomes one, and where a topic lives in the gossip network.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "nostr/event.hpp"

namespace todoke::nostr {

using Hash32 = std::array<std::uint8_t, 32>;

inline constexpr std::string_view kGlobalTopic = "kukuri:global";

// `kukuri:<64 hex>`, `kukuri:global`, `kukuri:user:<64 hex>` (hex in lower case), or one of `reserved`. Any
// other value of a `t` tag is a hashtag.
bool is_topic_id(std::string_view text, std::span<const std::string> reserved = {});

// A text for which is_topic_id said yes.
class TopicId {
 public:
  static std::optional<TopicId> from(std::string_view text, std::span<const std::string> reserved = {});
  static TopicId global();

  [[nodiscard]] const std::string& text() const { return text_; }
  friend auto operator<=>(const TopicId&, const TopicId&) = default;

 private:
  explicit TopicId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The topics of an event, each once, in the order of its tags.
std::vector<TopicId> topics_of(const Event& event, std::span<const std::string> reserved = {});
bool has_topic(const Event& event, std::span<const std::string> reserved = {});

// A name as people type it, as it is compared: NFKC, lower case, trimmed. Refused: no UTF-8, nothing left,
// longer than kTopicNameBytesMax.
inline constexpr std::size_t kTopicNameBytesMax = 1024;  // a name is a line at most; bounds the work
Expected<std::string> normal_topic_name(std::string_view name);

// What is hashed for a name. Two mappings, so that a network can move from one to the other while both are in
// use.
enum class TopicMapping : std::uint8_t {
  v1,  // network_id, normal name
  v2,  // `kukuri:topic:v2`, zero byte, network_id, zero byte, normal name: where each ends can't be mistaken
};

// `kukuri:` + hex of BLAKE3 by the mapping. A name that is a topic id already stays what it is. network_id
// keeps networks apart: `kukuri:main:`, `kukuri:dev:`.
Expected<TopicId> topic_id_of_name(std::string_view network_id, std::string_view name,
                                   TopicMapping mapping = TopicMapping::v1);

// The 32 bytes by which gossip knows the topic: those of `kukuri:<64 hex>`, else BLAKE3 of the topic id.
Hash32 gossip_topic_id(const TopicId& topic);

Hash32 blake3(std::span<const std::uint8_t> bytes);

}  // namespace todoke::nostr
