#include "nostr/kinds.hpp"

#include "base/text.hpp"
#include "nostr/event.hpp"

namespace todoke::nostr {

std::string Address::text() const {
  auto out = std::to_string(kind);
  out.reserve(out.size() + 2 + Pubkey::kHexSize + d.size());
  out.push_back(':');
  append_hex(out, pubkey.bytes());
  out.push_back(':');
  out += d;
  return out;
}

std::optional<Address> Address::parse(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto digits = text.substr(0, colon);
  const auto kind = parse_number<Kind>(digits);
  if (!kind) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;

  const auto rest = text.substr(colon + 1);
  if (rest.size() <= Pubkey::kHexSize || rest[Pubkey::kHexSize] != ':') return std::nullopt;
  const auto pubkey = Pubkey::from_hex(rest.substr(0, Pubkey::kHexSize));
  if (!pubkey) return std::nullopt;
  const auto d = rest.substr(Pubkey::kHexSize + 1);
  switch (class_of(*kind)) {
    case KindClass::addressable:
      break;
    case KindClass::replaceable:
      if (!d.empty()) return std::nullopt;
      break;
    case KindClass::regular:
    case KindClass::ephemeral:
      return std::nullopt;
  }
  return Address{*kind, *pubkey, std::string(d)};
}

std::optional<Address> address_of(const Event& event) {
  switch (class_of(event.kind())) {
    case KindClass::replaceable:
      return Address{event.kind(), event.pubkey(), {}};
    case KindClass::addressable:
      return Address{event.kind(), event.pubkey(), std::string(event.first_value("d").value_or(""))};
    case KindClass::regular:
    case KindClass::ephemeral:
      break;
  }
  return std::nullopt;
}

}  // namespace todoke::nostr
