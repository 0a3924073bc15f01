#include "base/sha256.hpp"

#include <memory>
#include <new>
#include <stdexcept>

#include <openssl/evp.h>

namespace todoke {
namespace {

// Fetching the digest and making a context for each hash would cost as much as the hash of a small event.
struct KeptDigest {
  struct Free {
    void operator()(EVP_MD* md) const { EVP_MD_free(md); }
    void operator()(EVP_MD_CTX* ctx) const { EVP_MD_CTX_free(ctx); }
  };
  std::unique_ptr<EVP_MD, Free> digest{EVP_MD_fetch(nullptr, "SHA256", nullptr)};
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};

  KeptDigest() {
    if (!digest || !context) throw std::bad_alloc();
  }
};

}  // namespace

std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> pieces) {
  thread_local KeptDigest kept;
  std::array<std::uint8_t, 32> out;
  bool good = EVP_DigestInit_ex2(kept.context.get(), kept.digest.get(), nullptr) == 1;
  for (const auto piece : pieces) {
    good = good && EVP_DigestUpdate(kept.context.get(), piece.data(), piece.size()) == 1;
  }
  if (!good || EVP_DigestFinal_ex(kept.context.get(), out.data(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 failed");
  }
  return out;
}

}  // namespace todoke
