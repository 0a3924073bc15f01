#include "nostr/event_id.hpp"

#include <bit>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>

#include <openssl/evp.h>

#include "nostr/canonical.hpp"
#include "nostr/event_parts.hpp"

namespace todoke::nostr {
namespace {

// Fetching the digest and making a context for each hash would cost as much as the hash of a small event.
class Sha256 {
 public:
  Sha256() : digest_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    if (!digest_ || !context_) throw std::bad_alloc();
  }

  EventId::Bytes operator()(std::initializer_list<std::string_view> pieces) {
    EventId::Bytes out;
    bool good = EVP_DigestInit_ex2(context_.get(), digest_.get(), nullptr) == 1;
    for (const auto piece : pieces) {
      good = good && EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1;
    }
    if (!good || EVP_DigestFinal_ex(context_.get(), out.data(), nullptr) != 1) {
      throw std::runtime_error("SHA-256 failed");
    }
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD, Free> digest_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

Sha256& sha256() {
  thread_local Sha256 hash;
  return hash;
}

}  // namespace

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
      append_canonical_string(out, *text++);
    }
    out.push_back(']');
  }
  out += "],";
  append_canonical_string(out, parts.content);
  out.push_back(']');
}

EventId compute_id(const Event& event) {
  thread_local std::string prefix;
  prefix.clear();
  append_id_prefix(prefix, event.pubkey(), event.created_at(), event.kind());
  return EventId(sha256()({prefix, event.tags_json(), ",", event.content_json(), "]"}));
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
  return EventId(sha256()({canonical_text}));
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
