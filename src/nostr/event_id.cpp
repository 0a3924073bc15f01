#include "nostr/event_id.hpp"

#include <bit>

#include "base/json_escape.hpp"
#include "base/sha256.hpp"
#include "nostr/event_parts.hpp"

namespace todoke::nostr {

void append_id_prefix(std::string& out, const Pubkey& pubkey, std::int64_t created_at, Kind kind) {
  out += R"([0,")";
  append_hex(out, pubkey.bytes());
  out += R"(",)";
  append_integer(out, created_at);
  out.push_back(',');
  append_integer(out, kind);
  out.push_back(',');
}

void append_id_text(std::string& out, const EventParts& parts) {
  append_id_prefix(out, parts.pubkey, parts.created_at, parts.kind);
  out.push_back('[');
  auto text = parts.strings.begin();
  bool first = true;
  for (const auto size : parts.tag_sizes) {
    if (!first) out.push_back(',');
    first = false;
    out.push_back('[');
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i > 0) out.push_back(',');
      append_valid_json_string(out, *text++);
    }
    out.push_back(']');
  }
  out += "],";
  append_valid_json_string(out, parts.content);
  out.push_back(']');
}

EventId compute_id(const Event& event) {
  thread_local std::string prefix;
  prefix.clear();
  append_id_prefix(prefix, event.pubkey(), event.created_at(), event.kind());
  return EventId(sha256({prefix, event.tags_json(), ",", event.content_json(), "]"}));
}

std::string canonical_text(const Event& event) {
  EventParts parts;
  parts.pubkey = event.pubkey();
  parts.created_at = event.created_at();
  parts.kind = event.kind();
  parts.content = event.content();
  for (const auto tag : event.tags()) {
    parts.tag_sizes.push_back(static_cast<std::uint32_t>(tag.size()));
    for (std::size_t i = 0; i < tag.size(); ++i) parts.strings.push_back(tag[i]);
  }
  std::string out;
  append_id_text(out, parts);
  return out;
}

EventId hash_of(std::string_view canonical_text) {
  return EventId(sha256({canonical_text}));
}

unsigned difficulty_of(const EventId& id) {
  unsigned bits = 0;
  for (const auto byte : id.bytes()) {
    bits += static_cast<unsigned>(std::countl_zero(byte));
    if (byte != 0) break;
  }
  return bits;
}

}  // namespace todoke::nostr
