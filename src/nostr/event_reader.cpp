#include "nostr/event_reader.hpp"

#include <array>
#include <limits>

namespace todoke::nostr {
namespace {

enum Member : unsigned { kId, kPubkey, kCreatedAt, kKind, kTags, kContent, kSig, kUnknown };

constexpr std::array<std::string_view, 7> kNames = {"id",   "pubkey",  "created_at", "kind",
                                                    "tags", "content", "sig"};
constexpr unsigned kAllSeen = (1U << kNames.size()) - 1;

// The braces, seven quoted names with their colons, six commas, and the quotes of id, pubkey and sig.
constexpr std::size_t frame_size() {
  std::size_t size = 2 + 6 + 3 * 2;
  for (const auto name : kNames) size += name.size() + 3;
  return size;
}
constexpr std::size_t kFrameSize = frame_size() + EventId::kHexSize + Pubkey::kHexSize + Signature::kHexSize;

Member member_of(std::string_view name) {
  for (unsigned i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Member>(i);
  }
  return kUnknown;
}

// The key is compared as it stands; only one with a backslash in it is worth decoding.
Member member_of(od::field& field) {
  const auto key = field.key();
  for (unsigned i = 0; i < kNames.size(); ++i) {
    if (key.unsafe_is_equal(kNames[i])) return static_cast<Member>(i);
  }
  const char* at = key.raw();
  while (*at != '"' && *at != '\\') ++at;
  if (*at == '"') return kUnknown;
  std::string_view decoded;
  return field.unescaped_key().get(decoded) == simdjson::SUCCESS ? member_of(decoded) : kUnknown;
}

template <class Value>
bool read_hex(od::value& value, Value& out) {
  const auto string = read_string(value);
  if (!string) return false;
  const auto parsed = Value::from_hex(string->text);
  if (parsed) out = *parsed;
  return parsed.has_value();
}

}  // namespace

std::optional<Reason> EventReader::note_string(const JsonString& string) {
  if (string.form == EscapeForm::lone_surrogate) return Reason::text_not_unicode;
  if (string.form != EscapeForm::canonical) canonical_ = false;
  return std::nullopt;
}

std::optional<Reason> EventReader::read_tags(od::value& value, const EventLimits& limits) {
  tags_start_ = value.raw_json_token().data();
  tags_size_ = 2;
  std::size_t text_bytes = 0;
  od::array tags;
  if (value.get_array().get(tags) != simdjson::SUCCESS) return Reason::malformed_tags;
  for (auto element : tags) {
    od::array tag;
    if (element.get_array().get(tag) != simdjson::SUCCESS) return Reason::malformed_tags;
    if (parts_.tag_sizes.size() == limits.tags_max) return Reason::too_many_tags;
    tags_size_ += parts_.tag_sizes.empty() ? 2U : 3U;
    std::uint32_t size = 0;
    for (auto inner : tag) {
      od::value item;
      if (std::move(inner).get(item) != simdjson::SUCCESS) return Reason::malformed_tags;
      const auto string = read_string(item);
      if (!string) return Reason::malformed_tags;
      if (const auto refused = note_string(*string)) return refused;
      if (size == limits.tag_values_max) return Reason::tag_too_long;
      text_bytes += string->text.size();
      if (text_bytes > limits.tags_bytes_max) return Reason::tags_too_large;
      tags_size_ += string->raw.size() + (size == 0 ? 2U : 3U);
      parts_.strings.push_back(string->text);
      ++size;
    }
    parts_.tag_sizes.push_back(size);
  }
  return std::nullopt;
}

std::optional<Reason> EventReader::read_member(unsigned member, od::value& value, const EventLimits& limits) {
  switch (member) {
    case kId:
      if (!read_hex(value, parts_.id)) return Reason::malformed_id;
      break;
    case kPubkey:
      if (!read_hex(value, parts_.pubkey)) return Reason::malformed_pubkey;
      break;
    case kSig:
      if (!read_hex(value, parts_.sig)) return Reason::malformed_sig;
      break;
    case kCreatedAt: {
      const auto number = read_integer(value);
      if (!number) return Reason::malformed_created_at;
      parts_.created_at = *number;
      break;
    }
    case kKind: {
      const auto number = read_integer(value);
      if (!number || *number < 0 || *number > std::numeric_limits<Kind>::max()) return Reason::malformed_kind;
      parts_.kind = static_cast<Kind>(*number);
      break;
    }
    case kTags:
      return read_tags(value, limits);
    case kContent: {
      const auto string = read_string(value);
      if (!string) return Reason::malformed_content;
      if (const auto refused = note_string(*string)) return refused;
      parts_.content = string->text;
      content_raw_ = string->raw;
      break;
    }
    default:
      skipped_ = true;
  }
  return std::nullopt;
}

std::optional<Reason> EventReader::read(od::object object, const EventLimits& limits) {
  parts_.tag_sizes.clear();
  parts_.strings.clear();
  canonical_ = true;
  skipped_ = false;
  unsigned seen = 0;
  for (auto member : object) {
    od::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return Reason::event_not_object;
    const auto which = member_of(field);
    if (which != kUnknown) {
      if ((seen & (1U << which)) != 0) return Reason::duplicate_member;
      seen |= 1U << which;
    }
    if (const auto refused = read_member(which, field.value(), limits)) return refused;
  }
  return seen == kAllSeen ? std::nullopt : std::optional(Reason::missing_member);
}

std::optional<Event> EventReader::finish(std::string_view received, const EventLimits& limits) const {
  // White space, further members, escaped names and numbers like -0 can only make the text longer than this.
  const auto compact_size = kFrameSize + decimal_size(parts_.created_at) + decimal_size(parts_.kind) +
                            tags_size_ + content_raw_.size() + 2;
  if (canonical_ && received.size() == compact_size) {
    if (compact_size > limits.event_bytes_max) return std::nullopt;
    const auto tags_at = static_cast<std::size_t>(tags_start_ - received.data());
    const auto content_at = static_cast<std::size_t>(content_raw_.data() - 1 - received.data());
    return assemble_received(parts_, received, tags_at, tags_size_, content_at, content_raw_.size() + 2);
  }
  auto event = assemble(parts_);
  if (event.json().size() > limits.event_bytes_max) return std::nullopt;
  return event;
}

EventReader& thread_event_reader() {
  thread_local EventReader reader;
  return reader;
}

std::string id_for_answer(od::object object) {
  for (auto member : object) {
    od::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return {};
    if (member_of(field) != kId) continue;
    const auto string = read_string(field.value());
    if (!string || string->text.size() > kEchoBytesMax) return {};
    return std::string(string->text);
  }
  return {};
}

}  // namespace todoke::nostr
