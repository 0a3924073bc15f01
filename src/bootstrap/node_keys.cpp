#include "bootstrap/node_keys.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/json_writer.hpp"

namespace todoke::bootstrap {
namespace {

constexpr std::string_view kKeyFile = "the node's key";
// Named in the derivation, so that the same secret gives other keys for anything else.
constexpr std::string_view kPurpose = "todoke service key 1: ";

struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

SecretBytes hkdf_sha256(SecretBytes secret, std::string info) {
  const std::unique_ptr<EVP_KDF, FreeKdf> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  std::string digest = "SHA256";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), digest.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  SecretBytes derived(nostr::SecretKey::kSize);
  const bool is_done = context && EVP_KDF_derive(context.get(), derived.data(), derived.size(), params) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  if (!is_done) throw std::runtime_error("OpenSSL could not derive a key");
  return derived;
}

// One number in 2^128 is no key: then the secret is broken, not unlucky.
nostr::SecretKey key_of(SecretBytes bytes) {
  auto hex = to_hex(bytes);
  auto key = nostr::SecretKey::from_hex(hex);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  OPENSSL_cleanse(hex.data(), hex.size());
  if (!key)
    throw UserError(fmt::format("{}: the file holds no usable secret; remove it to get a new one", kKeyFile));
  return *key;
}

std::filesystem::path beside(const std::filesystem::path& file, std::string_view ending) {
  auto path = file;
  path += ending;
  return path;
}

std::filesystem::path old_file(const std::filesystem::path& file) {
  return beside(file, ".old");
}

std::optional<SecretBytes> read_if_there(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  return read_or_make_secret(file, nostr::SecretKey::kSize, kKeyFile);
}

}  // namespace

NodeKeys::NodeKeys(const SecretBytes& secret) : node_(key_of(secret)) {
  for (const auto algorithm : kAlgorithms) {
    services_.push_back(key_of(hkdf_sha256(secret, std::string(kPurpose).append(algorithm))));
  }
}

const nostr::SecretKey& NodeKeys::service(std::string_view algorithm) const {
  const auto found = std::find(kAlgorithms.begin(), kAlgorithms.end(), algorithm);
  if (found == kAlgorithms.end()) throw std::out_of_range("no algorithm " + std::string(algorithm));
  return services_[static_cast<std::size_t>(found - kAlgorithms.begin())];
}

const nostr::SecretKey* NodeKeys::find(const nostr::Pubkey& pubkey) const {
  if (node_.pubkey() == pubkey) return &node_;
  const auto found = std::find_if(services_.begin(), services_.end(),
                                  [&](const auto& key) { return key.pubkey() == pubkey; });
  return found == services_.end() ? nullptr : &*found;
}

std::vector<NodeKeys::Named> NodeKeys::all() const {
  std::vector<Named> named{{kNodeAlgorithm, node_}};
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) named.push_back({kAlgorithms[i], services_[i]});
  return named;
}

std::string keys_json(const NodeKeys& keys) {
  JsonWriter json;
  json.begin_object().key("node").begin_object().member("pubkey", keys.node().pubkey().hex()).end_object();
  json.key("services").begin_array();
  for (const auto algorithm : kAlgorithms) {
    json.begin_object()
        .member("algorithm", algorithm)
        .member("pubkey", keys.service(algorithm).pubkey().hex())
        .end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

NodeKeys take_keys(const std::filesystem::path& file) {
  return NodeKeys(read_or_make_secret(file, nostr::SecretKey::kSize, kKeyFile));
}

std::optional<NodeKeys> read_keys(const std::filesystem::path& file) {
  const auto secret = read_if_there(file);
  return secret ? std::optional<NodeKeys>(*secret) : std::nullopt;
}

std::optional<NodeKeys> read_old_keys(const std::filesystem::path& file) {
  return read_keys(old_file(file));
}

NodeKeys rotate_keys(const std::filesystem::path& file) {
  const auto before = read_if_there(file);
  if (!before)
    throw UserError(
        fmt::format("{} {} is not there: a node makes it at its first start", kKeyFile, file.string()));
  const auto old = read_if_there(old_file(file));
  if (old && *old != *before) {
    throw UserError(
        fmt::format("{} {} is still kept: a relay withdraws what it has signed, and then removes it. Start "
                    "one, and rotate again later",
                    kKeyFile, old_file(file).string()));
  }
  SecretBytes fresh(nostr::SecretKey::kSize);
  random_bytes(fresh);
  NodeKeys keys(fresh);
  // A crash in between leaves the same secret in both files, which is no rotation.
  write_secret(old_file(file), *before, kKeyFile);
  write_secret(file, fresh, kKeyFile);
  return keys;
}

void forget_old_keys(const std::filesystem::path& file) {
  std::error_code failed;
  std::filesystem::remove(old_file(file), failed);
  if (failed)
    throw UserError(
        fmt::format("{} {} can't be removed: {}", kKeyFile, old_file(file).string(), failed.message()));
}

}  // namespace todoke::bootstrap
