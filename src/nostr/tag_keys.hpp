// Keys of bounded size for what the store looks up: tag values and addresses. Text of ordinary size is its
// own key; longer text, and text with U+0000, which the database can't hold, is replaced by its hash.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/kinds.hpp"

namespace todoke::nostr {

inline constexpr std::size_t kTagKeyBytesMax = 256;         // ids, keys, topics, addresses and URLs fit
inline constexpr std::size_t kEffectiveKeyBytesMax = 1024;  // well below what an index row may have

struct TagKey {
  char letter;
  std::string value;  // tag_value_key of the tag's value
  friend auto operator<=>(const TagKey&, const TagKey&) = default;
};

// Every tag that a filter can ask for: a name of one letter (a-z, A-Z) and a second element. Each pair once,
// in ascending order.
std::vector<TagKey> tag_keys_of(const Event& event);

// The value, or `sha256:<hex>`. A value that itself reads `sha256:<hex>` shares its key with the hashed one:
// compare the values of what the key found.
std::string tag_value_key(std::string_view value);

// Address::text(), or `<kind>:<pubkey>:sha256:<hex of d's hash>`. Only an author who wants that gets two of
// their own addresses under one key.
std::string effective_key(const Address& address);

}  // namespace todoke::nostr
