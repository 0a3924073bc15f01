// A secret in a file that only its user can read, such as a private key: random bytes in hex, made when they
// are first asked for. Processes that share the file have the same secret, also when they begin at the same
// moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace todoke {

using SecretBytes = std::vector<std::uint8_t>;

// `what` is for messages: "the gossip key". Throws UserError for a file that can't be used: one that others
// can read, or that holds something else.
SecretBytes read_or_make_secret(const std::filesystem::path& path, std::size_t size, std::string_view what);

// The same for a file that is open, and locked by its caller. `path` is for messages.
SecretBytes read_or_make_secret(int fd, const std::filesystem::path& path, std::size_t size,
                                std::string_view what);

// Puts a secret in the place of what the file holds, at once or not at all: who reads it meanwhile gets the
// one or the other. Throws UserError where it can't be written.
void write_secret(const std::filesystem::path& path, const SecretBytes& secret, std::string_view what);

}  // namespace todoke
