#include "base/secret_file.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace todoke {
namespace {

class SecretFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string refusal() const {
    try {
      read_or_make_secret(path, 32, "the test's secret");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  void write(const std::string& text) const {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("todoke-secret-{}", random_hex(8));
  const std::filesystem::path path = folder / "secret";
};

TEST_F(SecretFileTest, AnotherSecretTakesItsPlaceForItsOwnerOnly) {
  const auto before = read_or_make_secret(path, 32, "the test's secret");
  const SecretBytes other(32, 7);
  write_secret(path, other, "the test's secret");
  EXPECT_NE(before, other);
  EXPECT_EQ(read_or_make_secret(path, 32, "the test's secret"), other);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  EXPECT_THROW(write_secret(folder / "none" / "secret", other, "the test's secret"), UserError);
}

TEST_F(SecretFileTest, IsMadeOnceAndReadByItsOwnerOnly) {
  const auto made = read_or_make_secret(path, 32, "the test's secret");
  EXPECT_EQ(made.size(), 32U);
  EXPECT_EQ(read_or_make_secret(path, 32, "the test's secret"), made);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST_F(SecretFileTest, AllWhoBeginAtOnceGetTheSame) {
  std::vector<SecretBytes> got(8);
  {
    std::vector<std::jthread> threads;
    for (auto& secret : got) {
      threads.emplace_back([&] { secret = read_or_make_secret(path, 32, "the test's secret"); });
    }
  }
  EXPECT_EQ(std::set(got.begin(), got.end()).size(), 1U);
}

TEST_F(SecretFileTest, AFileThatCannotBeUsedIsRefused) {
  write("not hex");
  EXPECT_EQ(refusal(),
            fmt::format("the test's secret {} does not hold 64 hex digits; remove it to get a new one",
                        path.string()));
  write(std::string(66, 'a'));
  EXPECT_NE(refusal().find("does not hold"), std::string::npos);
  write(std::string(64, 'a') + "\n");
  EXPECT_EQ(refusal(), "");
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  EXPECT_NE(refusal().find("can be read by others: chmod 600 mends it"), std::string::npos);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_NE(refusal().find("can't be opened"), std::string::npos);
}

}  // namespace
}  // namespace todoke
