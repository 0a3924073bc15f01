#include "admin/passwords.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace todoke::admin {
namespace {

bool matches(const std::string& password, const std::string& hash) {
  bool is_it = false;
  asio::io_context io;
  const auto ask = [&]() -> Task<void> { is_it = co_await is_password(password, hash); };
  asio::co_spawn(io, ask(), [](const std::exception_ptr& error) { EXPECT_FALSE(error); });
  io.run();
  wait_for_blocking_calls();
  return is_it;
}

TEST(PasswordsTest, AHashFitsItsPasswordOnly) {
  const auto hash = hash_password("secret");
  EXPECT_TRUE(matches("secret", hash));
  EXPECT_FALSE(matches("Secret", hash));
  EXPECT_FALSE(matches("", hash));
}

TEST(PasswordsTest, NobodysHashFitsNoPassword) {
  EXPECT_FALSE(matches("", ""));
  EXPECT_FALSE(matches("secret", ""));
}

TEST(PasswordsTest, TwoHashesOfOnePasswordDiffer) {
  EXPECT_NE(hash_password("secret"), hash_password("secret"));
}

TEST(PasswordsTest, EmptyAndEndlessPasswordsAreRefused) {
  EXPECT_FALSE(check_password(""));
  EXPECT_TRUE(check_password("x"));
  EXPECT_FALSE(check_password(std::string(kPasswordBytesMax + 1, 'x')));
}

}  // namespace
}  // namespace todoke::admin
