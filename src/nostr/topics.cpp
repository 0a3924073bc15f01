#include "nostr/topics.hpp"

#include <algorithm>
#include <blake3.h>
#include <stdexcept>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "base/bytes.hpp"
#include "base/hash_table.hpp"

namespace todoke::nostr {
namespace {

constexpr std::string_view kNamespace = "kukuri:";
constexpr std::string_view kUser = "user:";
constexpr std::string_view kMappingV2 = "kukuri:topic:v2";
constexpr std::size_t kHashHexSize = 64;

bool is_hash_hex(std::string_view text) {
  Hash32 bytes;
  return text.size() == kHashHexSize && from_hex(text, bytes);
}

void trim(icu::UnicodeString& text) {
  std::int32_t start = 0;
  while (start < text.length() && u_isUWhiteSpace(text.char32At(start))) start = text.moveIndex32(start, 1);
  text.remove(0, start);
  while (!text.isEmpty() && u_isUWhiteSpace(text.char32At(text.length() - 1))) {
    text.truncate(text.moveIndex32(text.length(), -1));
  }
}

std::string mapped_text(std::string_view network_id, std::string_view normal, TopicMapping mapping) {
  std::string text;
  if (mapping == TopicMapping::v2) text.append(kMappingV2).push_back('\0');
  text += network_id;
  if (mapping == TopicMapping::v2) text.push_back('\0');
  text += normal;
  return text;
}

// ICU takes invalid bytes for U+FFFD instead of refusing them.
bool has_invalid_utf8(const icu::UnicodeString& decoded, std::string_view original) {
  std::string back;
  decoded.toUTF8String(back);
  return back != original;
}

}  // namespace

bool is_topic_id(std::string_view text, std::span<const std::string> reserved) {
  if (text.starts_with(kNamespace)) {
    auto rest = text.substr(kNamespace.size());
    if (text == kGlobalTopic || is_hash_hex(rest)) return true;
    if (rest.starts_with(kUser) && is_hash_hex(rest.substr(kUser.size()))) return true;
  }
  return std::find(reserved.begin(), reserved.end(), text) != reserved.end();
}

std::optional<TopicId> TopicId::from(std::string_view text, std::span<const std::string> reserved) {
  if (!is_topic_id(text, reserved)) return std::nullopt;
  return TopicId(std::string(text));
}

TopicId TopicId::global() {
  return TopicId(std::string(kGlobalTopic));
}

std::vector<TopicId> topics_of(const Event& event, std::span<const std::string> reserved) {
  std::vector<TopicId> topics;
  if (!event.may_have_tag('t')) return topics;
  HashSet<std::string_view> seen;
  for (const auto tag : event.tags()) {
    if (tag.name() != "t") continue;
    auto topic = TopicId::from(tag.value(), reserved);
    if (topic && seen.insert(tag.value()).second) topics.push_back(std::move(*topic));
  }
  return topics;
}

bool has_topic(const Event& event, std::span<const std::string> reserved) {
  if (!event.may_have_tag('t')) return false;
  for (const auto tag : event.tags()) {
    if (tag.name() == "t" && is_topic_id(tag.value(), reserved)) return true;
  }
  return false;
}

Expected<std::string> normal_topic_name(std::string_view name) {
  if (name.size() > kTopicNameBytesMax) return refuse("a topic name has at most 1024 bytes");
  auto text = icu::UnicodeString::fromUTF8(icu::StringPiece(name.data(), static_cast<int>(name.size())));
  if (has_invalid_utf8(text, name)) return refuse("a topic name must be UTF-8");
  auto status = U_ZERO_ERROR;
  const auto* nfkc = icu::Normalizer2::getNFKCInstance(status);
  if (U_SUCCESS(status)) text = nfkc->normalize(text, status);
  if (U_FAILURE(status)) throw std::runtime_error(std::string("NFKC: ") + u_errorName(status));
  text.toLower(icu::Locale::getRoot());
  trim(text);
  if (text.isEmpty()) return refuse("a topic name must not be empty");
  std::string normal;
  text.toUTF8String(normal);
  return normal;
}

Expected<TopicId> topic_id_of_name(std::string_view network_id, std::string_view name, TopicMapping mapping) {
  auto normal = normal_topic_name(name);
  if (!normal) return tl::unexpected(normal.error());
  if (auto already = TopicId::from(*normal)) return std::move(*already);
  const auto hash = blake3(as_bytes(mapped_text(network_id, *normal, mapping)));
  return *TopicId::from(std::string(kNamespace) + to_hex(hash));
}

Hash32 gossip_topic_id(const TopicId& topic) {
  const std::string_view text = topic.text();
  Hash32 bytes;
  if (text.starts_with(kNamespace) && from_hex(text.substr(kNamespace.size()), bytes)) return bytes;
  return blake3(as_bytes(text));
}

Hash32 blake3(std::span<const std::uint8_t> bytes) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  Hash32 out;
  blake3_hasher_finalize(&hasher, out.data(), out.size());
  return out;
}

}  // namespace todoke::nostr
