// Inside this room: what an Event is put together from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/event.hpp"

namespace todoke::nostr {

// All strings are decoded, valid UTF-8 and belong to somebody else.
struct EventParts {
  EventId id{EventId::Bytes{}};
  Pubkey pubkey{Pubkey::Bytes{}};
  Signature sig{Signature::Bytes{}};
  std::int64_t created_at = 0;
  Kind kind = 0;
  std::vector<std::uint32_t> tag_sizes;   // strings in each tag
  std::vector<std::string_view> strings;  // those of all tags, one after the other
  std::string_view content;
};

// An event with JSON written anew.
Event assemble(const EventParts& parts);

// An event that keeps `received`, which is in the form that Event::json() promises, as its JSON. Tags and
// content stand at the given places of it; strings of `parts` that are not escaped there lie inside it.
Event assemble_received(const EventParts& parts, std::string_view received, std::size_t tags_at,
                        std::size_t tags_size, std::size_t content_at, std::size_t content_size);

// `[0,"<pubkey>",<created_at>,<kind>,` : how the text that is hashed begins.
void append_id_prefix(std::string& out, const Pubkey& pubkey, std::int64_t created_at, Kind kind);

// The whole text that is hashed, made of the values.
void append_id_text(std::string& out, const EventParts& parts);

void append_integer(std::string& out, std::int64_t value);
std::size_t decimal_size(std::int64_t value);

}  // namespace todoke::nostr
