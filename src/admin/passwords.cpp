#include "admin/passwords.hpp"

#include <argon2.h>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/wipe.hpp"

namespace todoke::admin {
namespace {

// The second recommended option of RFC 9106, with one lane: the blocking pool has few threads.
constexpr std::uint32_t kPasses = 3;
constexpr std::uint32_t kKibibytes = 64 * 1'024;
constexpr std::uint32_t kLanes = 1;
constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kHashBytes = 32;

const std::string& hash_of_nobody() {
  static const std::string kHash = hash_password(random_hex(kHashBytes));
  return kHash;
}

}  // namespace

Expected<void> check_password(const std::string& password) {
  if (password.empty()) return refuse("a password can't be empty");
  if (password.size() > kPasswordBytesMax)
    return refuse(fmt::format("a password has at most {} bytes", kPasswordBytesMax));
  return {};
}

std::string hash_password(const std::string& password) {
  std::array<std::uint8_t, kSaltBytes> salt{};
  random_bytes(salt);
  std::string encoded(argon2_encodedlen(kPasses, kKibibytes, kLanes, kSaltBytes, kHashBytes, Argon2_id),
                      '\0');
  const int result =
      argon2id_hash_encoded(kPasses, kKibibytes, kLanes, password.data(), password.size(), salt.data(),
                            salt.size(), kHashBytes, encoded.data(), encoded.size());
  if (result != ARGON2_OK) throw std::runtime_error(argon2_error_message(result));
  encoded.resize(encoded.find('\0'));
  return encoded;
}

Task<bool> is_password(std::string password, std::string hash) {
  bool matches = false;
  const std::function<void()> verify = [&] {
    const auto& against = hash.empty() ? hash_of_nobody() : hash;
    matches =
        argon2id_verify(against.c_str(), password.data(), password.size()) == ARGON2_OK && !hash.empty();
  };
  co_await run_blocking(verify);
  wipe(password);
  co_return matches;
}

}  // namespace todoke::admin
