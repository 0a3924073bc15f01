// The clients of the API: the name behind a bearer token, or the address when tokens are off. Tokens stand in
// a file, one on each line, and are kept as hashes in memory:
//
//   # a comment
//   desk-7 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//   correct-horse-battery-staple
//
// A line is a name and the SHA-256 of its token, or a token alone, whose name is made of its hash. A file
// without a token means nobody. A hash alone is refused.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::orders {

class Tokens {
 public:
  static Expected<Tokens> parse(std::string_view text);
  // The name behind the token. Looked up by its hash: the time tells nothing about other tokens.
  [[nodiscard]] std::optional<std::string> name_of(std::string_view token) const;
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  std::map<std::string, std::string> names_;  // by hash
};

class Clients {
 public:
  // An empty path: no tokens are asked for.
  explicit Clients(std::string tokens_file) : path_(std::move(tokens_file)) {}

  // Reads the file (again). A file that can't be read, or has a wrong line, leaves the tokens in use.
  Expected<void> load();

  // `authorization` is the header. Nothing: the client must show a token that is known.
  [[nodiscard]] std::optional<std::string> who(std::string_view authorization,
                                               const std::string& address) const;

 private:
  std::string path_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_;
};

}  // namespace todoke::orders
