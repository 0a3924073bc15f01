// The keys that a node signs with: its own, and one for each algorithm whose results it publishes, as NIP-85
// asks. A file holds one secret, which only the node's user can read; every key is derived from it, so hosts
// that share the file are one node.
//
//   node            the secret itself
//   an algorithm    HKDF-SHA256 of the secret, named after the algorithm
//
// A rotation keeps the secret before in a second file beside the first, until a relay has withdrawn what it
// had signed (publisher.hpp).
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret_file.hpp"
#include "nostr/signature.hpp"

namespace todoke::bootstrap {

inline constexpr std::string_view kNodeAlgorithm = "node";
// What the node derives results by, each with a key of its own.
inline constexpr std::array<std::string_view, 3> kAlgorithms{"labels", "report-based",
                                                             "communication-density"};

class NodeKeys {
 public:
  explicit NodeKeys(const SecretBytes& secret);

  [[nodiscard]] const nostr::SecretKey& node() const { return node_; }
  // Throws std::out_of_range for what is none of kAlgorithms.
  [[nodiscard]] const nostr::SecretKey& service(std::string_view algorithm) const;
  // The one with this public key; null: none of them.
  [[nodiscard]] const nostr::SecretKey* find(const nostr::Pubkey& pubkey) const;

  struct Named {
    std::string_view algorithm;
    const nostr::SecretKey& key;
  };
  // The node's first, then the algorithms in their order.
  [[nodiscard]] std::vector<Named> all() const;

 private:
  nostr::SecretKey node_;
  std::vector<nostr::SecretKey> services_;  // as kAlgorithms
};

// {"node":{"pubkey":…},"services":[{"algorithm":…,"pubkey":…},…]}, in hex.
std::string keys_json(const NodeKeys& keys);

// All of these throw UserError for a file that can't be used.

// Makes the file where it is missing.
NodeKeys take_keys(const std::filesystem::path& file);
// Nothing: there is no such file.
std::optional<NodeKeys> read_keys(const std::filesystem::path& file);
// Those before the last rotation, as long as something that they signed has not been withdrawn.
std::optional<NodeKeys> read_old_keys(const std::filesystem::path& file);
// Replaces the secret at once or not at all, and keeps the one before. Refused while an older one is still
// kept.
NodeKeys rotate_keys(const std::filesystem::path& file);
// Nothing that the old keys signed is left.
void forget_old_keys(const std::filesystem::path& file);

}  // namespace todoke::bootstrap
