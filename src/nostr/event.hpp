// An event whose form is right: typed members, and its JSON as subscribers get it. Whether id and signature
// are right is another question (event_id.hpp, signature.hpp). Made by the parser or by sign_event, never
// changed.
//
// Cost: two allocations. One text holds the JSON and, behind it, those strings that are escaped in it; all
// other strings are slices of the JSON. Views that an event gives live as long as the event stays in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/ids.hpp"
#include "nostr/kinds.hpp"

namespace todoke::nostr {

struct EventParts;

class Event {
  struct Slice {
    std::uint32_t offset;
    std::uint32_t size;
  };

 public:
  // One tag: a list of strings, which may be empty.
  class Tag {
   public:
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::string_view operator[](std::size_t i) const {
      return {text_ + values_[i].offset, values_[i].size};
    }
    [[nodiscard]] std::string_view name() const { return size_ > 0 ? (*this)[0] : std::string_view(); }
    // The second element, or "".
    [[nodiscard]] std::string_view value() const { return size_ > 1 ? (*this)[1] : std::string_view(); }

   private:
    friend class Event;
    Tag(const char* text, const Slice* values, std::size_t size)
        : text_(text), values_(values), size_(size) {}
    const char* text_;
    const Slice* values_;
    std::size_t size_;
  };

  class TagIterator {
   public:
    using value_type = Tag;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Tag operator*() const { return {text_, at_ + 1, at_->size}; }
    TagIterator& operator++() {
      at_ += 1 + at_->size;
      return *this;
    }
    TagIterator operator++(int) {
      auto before = *this;
      ++*this;
      return before;
    }
    bool operator==(const TagIterator& other) const { return at_ == other.at_; }

   private:
    friend class Event;
    TagIterator(const char* text, const Slice* at) : text_(text), at_(at) {}
    const char* text_;
    const Slice* at_;
  };

  struct Tags {
    TagIterator first;
    TagIterator last;
    [[nodiscard]] TagIterator begin() const { return first; }
    [[nodiscard]] TagIterator end() const { return last; }
  };

  [[nodiscard]] const EventId& id() const { return id_; }
  [[nodiscard]] const Pubkey& pubkey() const { return pubkey_; }
  [[nodiscard]] const Signature& sig() const { return sig_; }
  [[nodiscard]] std::int64_t created_at() const { return created_at_; }
  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::string_view content() const { return view(content_); }

  [[nodiscard]] std::size_t tag_count() const { return tag_count_; }
  [[nodiscard]] Tags tags() const {
    return {TagIterator(text_.data(), tags_.data()), TagIterator(text_.data(), tags_.data() + tags_.size())};
  }
  // The second element of the first tag called `name`, "" when that tag ends before it; nothing when there is
  // no such tag.
  [[nodiscard]] std::optional<std::string_view> first_value(std::string_view name) const;
  // False: no tag called by this one letter has a value. True: look. Keeps a filter from walking the tags.
  [[nodiscard]] bool may_have_tag(char letter) const { return (letters_ & letter_bit(letter)) != 0; }

  // The whole event: no white space, exactly the seven members, strings in canonical form. The members are in
  // the order in which they were received, if the received text was like that already.
  [[nodiscard]] std::string_view json() const { return {text_.data(), json_size_}; }
  // Two members of it as they stand there.
  [[nodiscard]] std::string_view tags_json() const { return view(tags_json_); }
  [[nodiscard]] std::string_view content_json() const { return view(content_json_); }

 private:
  friend Event assemble(const EventParts& parts);
  friend Event assemble_received(const EventParts& parts, std::string_view received, std::size_t tags_at,
                                 std::size_t tags_size, std::size_t content_at, std::size_t content_size);
  explicit Event(const EventParts& parts);

  [[nodiscard]] std::string_view view(Slice slice) const { return {text_.data() + slice.offset, slice.size}; }
  static std::uint64_t letter_bit(char letter);
  void index_letters();

  EventId id_;
  Pubkey pubkey_;
  Signature sig_;
  std::int64_t created_at_;
  std::uint64_t letters_ = 0;
  Kind kind_;
  std::uint32_t tag_count_;
  std::uint32_t json_size_ = 0;
  Slice tags_json_{};
  Slice content_json_{};
  Slice content_{};
  std::string text_;
  std::vector<Slice> tags_;  // for each tag one slice that counts its strings, then the strings
};

// The same JSON from the columns of a stored event, without making an Event: `tags_json` is what tags_json()
// gave, `content` is the decoded text.
void append_event_json(std::string& out, const EventId& id, const Pubkey& pubkey, std::int64_t created_at,
                       Kind kind, std::string_view tags_json, std::string_view content, const Signature& sig);

}  // namespace todoke::nostr
