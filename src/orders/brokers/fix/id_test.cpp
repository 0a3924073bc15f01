#include "orders/brokers/fix/id.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

TEST(ClOrdId, IsTheKeyWhereItFits) {
  EXPECT_EQ(cl_ord_id("first-order-1", 20), "first-order-1");
  EXPECT_EQ(cl_ord_id("abcdefghij0123456789", 20), "abcdefghij0123456789");
}

TEST(ClOrdId, IsAHashOfAKeyThatIsTooLongOrHasOtherCharacters) {
  // printf %s KEY | sha256sum | cut -c-64 | xxd -r -p | base32 | cut -c-20
  EXPECT_EQ(cl_ord_id("abcdefghij0123456789x", 20), "4A4IHZOYPPS6RKAPOOW4");
  EXPECT_EQ(cl_ord_id("order/2025:08_24", 20), "7Q6OIPPHPTN5P5KCCUJ5");
  EXPECT_EQ(cl_ord_id("order/2025:08_24", 64), "7Q6OIPPHPTN5P5KCCUJ5PIXGSZ4AFDRPQUV4OGSKDMW4YIU6E53Q");
}

TEST(ClOrdId, VectorsOfThePageHold) {
  std::ifstream page(std::string(TODOKE_DOCS) + "/orders-fix.md");
  std::string line;
  int vectors = 0;
  while (std::getline(page, line)) {
    // | `key` | 20 | `ClOrdID` |
    if (!line.starts_with("| `")) continue;
    std::istringstream cells(line);
    std::string bar;
    std::string key;
    std::string length;
    std::string id;
    cells >> bar >> key >> bar >> length >> bar >> id;
    if (length.empty() || length.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!id.starts_with('`')) continue;
    const auto unquoted = [](const std::string& text) { return text.substr(1, text.size() - 2); };
    EXPECT_EQ(cl_ord_id(unquoted(key), std::stoul(length)), unquoted(id)) << line;
    ++vectors;
  }
  EXPECT_GE(vectors, 5);
}

}  // namespace
}  // namespace todoke::orders
