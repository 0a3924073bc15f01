#include "nostr/tag_keys.hpp"

#include <algorithm>

#include "base/sha256.hpp"

namespace todoke::nostr {
namespace {

bool fits(std::string_view text, std::size_t bytes_max) {
  return text.size() <= bytes_max && text.find('\0') == std::string_view::npos;
}

std::string hash_key(std::string_view text) {
  std::string key = "sha256:";
  append_hex(key, sha256({text}));
  return key;
}

bool is_letter(std::string_view name) {
  return name.size() == 1 && ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));
}

}  // namespace

std::vector<TagKey> tag_keys_of(const Event& event) {
  std::vector<TagKey> keys;
  for (const auto tag : event.tags()) {
    if (tag.size() > 1 && is_letter(tag.name())) keys.push_back({tag.name()[0], tag_value_key(tag.value())});
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::string tag_value_key(std::string_view value) {
  return fits(value, kTagKeyBytesMax) ? std::string(value) : hash_key(value);
}

std::string effective_key(const Address& address) {
  auto text = address.text();
  if (fits(text, kEffectiveKeyBytesMax)) return text;
  return Address{address.kind, address.pubkey, hash_key(address.d)}.text();
}

}  // namespace todoke::nostr
