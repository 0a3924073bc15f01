#include "nostr/event.hpp"

#include <charconv>
#include <functional>
#include <limits>
#include <stdexcept>

#include "base/json_escape.hpp"
#include "nostr/event_parts.hpp"

namespace todoke::nostr {
namespace {

constexpr std::uint32_t kBehindJson = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kNumberSizeMax = 20;  // of an int64 with its sign
// Everything in an event's JSON but tags and content.
constexpr std::size_t kFrameSizeMax = 400;

std::uint32_t narrow(std::size_t size) {
  // Slices count in 32 bits. Callers that take events bound them far below that; this check is for a caller
  // that forgot to.
  if (size >= kBehindJson) throw std::length_error("an event's text is too long");
  return static_cast<std::uint32_t>(size);
}

template <class Bytes>
void append_member(std::string& out, std::string_view before, const Bytes& value) {
  out += before;
  append_hex(out, value.bytes());
}

}  // namespace

void append_integer(std::string& out, std::int64_t value) {
  char digits[kNumberSizeMax];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

std::size_t decimal_size(std::int64_t value) {
  char digits[kNumberSizeMax];
  return static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits);
}

Event::Event(const EventParts& parts)
    : id_(parts.id),
      pubkey_(parts.pubkey),
      sig_(parts.sig),
      created_at_(parts.created_at),
      kind_(parts.kind),
      tag_count_(narrow(parts.tag_sizes.size())) {
  tags_.reserve(parts.tag_sizes.size() + parts.strings.size());
}

std::uint64_t Event::letter_bit(char letter) {
  // 'A' and 'a' are 32 apart: two halves of one word.
  if (letter >= 'a' && letter <= 'z') return std::uint64_t{1} << (letter - 'a');
  if (letter >= 'A' && letter <= 'Z') return std::uint64_t{1} << (letter - 'A' + 32);
  return 0;
}

void Event::index_letters() {
  for (const auto tag : tags()) {
    if (tag.size() > 1 && tag[0].size() == 1) letters_ |= letter_bit(tag[0][0]);
  }
}

std::optional<std::string_view> Event::first_value(std::string_view name) const {
  for (const auto tag : tags()) {
    if (tag.size() > 0 && tag[0] == name) return tag.value();
  }
  return std::nullopt;
}

Event assemble(const EventParts& parts) {
  Event event(parts);
  auto& out = event.text_;
  std::size_t strings_size = parts.content.size();
  for (const auto text : parts.strings) strings_size += text.size() + 3;
  narrow(strings_size);
  out.reserve(kFrameSizeMax + strings_size + 3 * parts.tag_sizes.size());

  const auto put = [&out](std::string_view text) {
    const auto at = out.size() + 1;
    const bool verbatim = append_valid_json_string(out, text);
    return Event::Slice{verbatim ? narrow(at) : kBehindJson, narrow(text.size())};
  };

  append_member(out, R"({"id":")", parts.id);
  append_member(out, R"(","pubkey":")", parts.pubkey);
  out += R"(","created_at":)";
  append_integer(out, parts.created_at);
  out += R"(,"kind":)";
  append_integer(out, parts.kind);
  out += R"(,"tags":)";
  const auto tags_at = out.size();
  out.push_back('[');
  auto text = parts.strings.begin();
  for (const auto size : parts.tag_sizes) {
    if (!event.tags_.empty()) out.push_back(',');
    out.push_back('[');
    event.tags_.push_back({0, size});
    for (std::uint32_t i = 0; i < size; ++i) {
      if (i > 0) out.push_back(',');
      event.tags_.push_back(put(*text++));
    }
    out.push_back(']');
  }
  out.push_back(']');
  event.tags_json_ = {narrow(tags_at), narrow(out.size() - tags_at)};
  out += R"(,"content":)";
  const auto content_at = out.size();
  event.content_ = put(parts.content);
  event.content_json_ = {narrow(content_at), narrow(out.size() - content_at)};
  append_member(out, R"(,"sig":")", parts.sig);
  out += "\"}";
  event.json_size_ = narrow(out.size());

  const auto append_decoded = [&out](Event::Slice& slice, std::string_view decoded) {
    if (slice.offset != kBehindJson) return;
    slice.offset = narrow(out.size());
    out += decoded;
  };
  append_decoded(event.content_, parts.content);
  std::size_t at = 0;
  text = parts.strings.begin();
  for (const auto size : parts.tag_sizes) {
    ++at;
    for (std::uint32_t i = 0; i < size; ++i) append_decoded(event.tags_[at++], *text++);
  }
  event.index_letters();
  return event;
}

Event assemble_received(const EventParts& parts, std::string_view received, std::size_t tags_at,
                        std::size_t tags_size, std::size_t content_at, std::size_t content_size) {
  Event event(parts);
  auto& out = event.text_;
  const auto inside = [&](std::string_view text) {
    const std::less_equal<> ordered;
    return ordered(received.data(), text.data()) &&
           ordered(text.data() + text.size(), received.data() + received.size());
  };
  std::size_t behind = inside(parts.content) ? 0 : parts.content.size();
  for (const auto text : parts.strings) behind += inside(text) ? 0 : text.size();
  out.reserve(received.size() + behind);
  out += received;
  event.json_size_ = narrow(received.size());
  event.tags_json_ = {narrow(tags_at), narrow(tags_size)};
  event.content_json_ = {narrow(content_at), narrow(content_size)};

  const auto slice_of = [&](std::string_view text) {
    if (inside(text)) {
      return Event::Slice{narrow(static_cast<std::size_t>(text.data() - received.data())),
                          narrow(text.size())};
    }
    const auto at = out.size();
    out += text;
    return Event::Slice{narrow(at), narrow(text.size())};
  };
  event.content_ = slice_of(parts.content);
  auto text = parts.strings.begin();
  for (const auto size : parts.tag_sizes) {
    event.tags_.push_back({0, size});
    for (std::uint32_t i = 0; i < size; ++i) event.tags_.push_back(slice_of(*text++));
  }
  event.index_letters();
  return event;
}

void append_event_json(std::string& out, const EventId& id, const Pubkey& pubkey, std::int64_t created_at,
                       Kind kind, std::string_view tags_json, std::string_view content,
                       const Signature& sig) {
  out.reserve(out.size() + kFrameSizeMax + tags_json.size() + content.size());
  append_member(out, R"({"id":")", id);
  append_member(out, R"(","pubkey":")", pubkey);
  out += R"(","created_at":)";
  append_integer(out, created_at);
  out += R"(,"kind":)";
  append_integer(out, kind);
  out += R"(,"tags":)";
  out += tags_json;
  out += R"(,"content":)";
  append_valid_json_string(out, content);
  append_member(out, R"(,"sig":")", sig);
  out += "\"}";
}

}  // namespace todoke::nostr
