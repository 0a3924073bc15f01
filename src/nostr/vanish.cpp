#include "nostr/vanish.hpp"

#include <algorithm>

#include "nostr/auth.hpp"

namespace todoke::nostr {

bool is_to_vanish_from(const Event& request, const std::string& public_host) {
  const AuthTarget relay{{public_host}};
  const auto tags = request.tags();
  return std::any_of(tags.begin(), tags.end(), [&](const Event::Tag& tag) {
    return tag.name() == "relay" && (tag.value() == "ALL_RELAYS" || names_relay(tag.value(), relay));
  });
}

}  // namespace todoke::nostr
