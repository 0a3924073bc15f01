#include "nostr/signature.hpp"

#include <memory>
#include <new>
#include <secp256k1.h>
#include <secp256k1_extrakeys.h>
#include <secp256k1_schnorrsig.h>
#include <stdexcept>

#include <openssl/crypto.h>
#include <simdjson.h>

#include "base/bytes.hpp"
#include "nostr/event_id.hpp"
#include "nostr/event_parts.hpp"

namespace todoke::nostr {
namespace {

struct Destroy {
  void operator()(secp256k1_context* context) const { secp256k1_context_destroy(context); }
};

// Never changed after it is made, which is what makes it usable from all threads.
const secp256k1_context* context() {
  static const auto instance = [] {
    std::unique_ptr<secp256k1_context, Destroy> made(secp256k1_context_create(SECP256K1_CONTEXT_NONE));
    std::array<std::uint8_t, 32> seed{};
    random_bytes(seed);
    if (!made || secp256k1_context_randomize(made.get(), seed.data()) != 1) throw std::bad_alloc();
    return made;
  }();
  return instance.get();
}

struct Keypair {
  secp256k1_keypair pair{};
  ~Keypair() { OPENSSL_cleanse(&pair, sizeof pair); }
};

void require_utf8(std::string_view text) {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    throw std::invalid_argument("an event's text is no UTF-8");
  }
}

}  // namespace

bool verify(const Pubkey& pubkey, const EventId& message, const Signature& signature) {
  secp256k1_xonly_pubkey point;
  if (secp256k1_xonly_pubkey_parse(context(), &point, pubkey.bytes().data()) != 1) return false;
  return secp256k1_schnorrsig_verify(context(), signature.bytes().data(), message.bytes().data(),
                                     EventId::kSize, &point) == 1;
}

std::optional<SecretKey> SecretKey::from_bytes(const Bytes& bytes) {
  Keypair keypair;
  if (secp256k1_keypair_create(context(), &keypair.pair, bytes.data()) != 1) return std::nullopt;
  secp256k1_xonly_pubkey point;
  Pubkey::Bytes pubkey{};
  if (secp256k1_keypair_xonly_pub(context(), &point, nullptr, &keypair.pair) != 1 ||
      secp256k1_xonly_pubkey_serialize(context(), pubkey.data(), &point) != 1) {
    throw std::runtime_error("a secret key has no public key");
  }
  return SecretKey(bytes, Pubkey(pubkey));
}

std::optional<SecretKey> SecretKey::from_hex(std::string_view hex) {
  Bytes bytes{};
  if (!todoke::from_hex(hex, bytes)) return std::nullopt;
  auto key = from_bytes(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

SecretKey SecretKey::generate() {
  Bytes bytes{};
  random_bytes(bytes);
  auto key = from_bytes(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  // One in 2^128: then the generator is broken, and trying again would hide it.
  if (!key) throw std::runtime_error("the random generator gave no usable key");
  return *key;
}

SecretKey::~SecretKey() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Signature SecretKey::sign(const EventId& message) const {
  std::array<std::uint8_t, 32> aux{};
  random_bytes(aux);
  return sign(message, aux);
}

Signature SecretKey::sign(const EventId& message, const std::array<std::uint8_t, 32>& aux) const {
  Keypair keypair;
  Signature::Bytes signature{};
  if (secp256k1_keypair_create(context(), &keypair.pair, bytes_.data()) != 1 ||
      secp256k1_schnorrsig_sign32(context(), signature.data(), message.bytes().data(), &keypair.pair,
                                  aux.data()) != 1) {
    throw std::runtime_error("signing failed");
  }
  return Signature(signature);
}

Event sign_event(const EventDraft& draft, const SecretKey& key) {
  EventParts parts;
  parts.pubkey = key.pubkey();
  parts.created_at = draft.created_at;
  parts.kind = draft.kind;
  parts.content = draft.content;
  require_utf8(draft.content);
  for (const auto& tag : draft.tags) {
    parts.tag_sizes.push_back(static_cast<std::uint32_t>(tag.size()));
    for (const auto& text : tag) {
      require_utf8(text);
      parts.strings.push_back(text);
    }
  }
  std::string text;
  append_id_text(text, parts);
  parts.id = hash_of(text);
  parts.sig = key.sign(parts.id);
  return assemble(parts);
}

}  // namespace todoke::nostr
