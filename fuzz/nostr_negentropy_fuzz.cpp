// Any bytes as a message of set reconciliation, to a server and to a client: never a crash, an answer within
// its bound, and an answer that the other side can read.
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "nostr/negentropy.hpp"
#include "require.hpp"

namespace {

using namespace todoke;
using namespace todoke::nostr;
using todoke::fuzz::require;

NegSet some_set(std::size_t size) {
  std::vector<NegItem> items;
  for (std::size_t i = 0; i < size; ++i) {
    items.push_back({static_cast<std::int64_t>(i / 3), EventId(sha256({std::to_string(i)}))});
  }
  return NegSet(std::move(items));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kLarge = some_set(5'000);
  static const auto kSmall = some_set(40);
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  for (const auto* set : {&kLarge, &kSmall}) {
    const auto answer = neg_answer(*set, message, kNegMessageBytesMin);
    if (answer) {
      require(answer->size() <= kNegMessageBytesMin);
      NegClient reader(kSmall, {});
      require(reader.take(*answer).has_value());
    }
    NegClient client(*set, {.message_bytes_max = kNegMessageBytesMin, .need_max = 1'000});
    const auto next = client.take(message);
    require(client.have().size() <= set->size() && client.need().size() <= 1'000);
    if (next && *next) require(neg_answer(kSmall, **next, kNegMessageBytesMin).has_value());
  }
  return 0;
}
