// Any bytes as the JSON of an event's tags and content (up to and after the first zero byte): reading,
// writing and reading again gives the same event, and the hash over the received text is the hash over the
// values.
#include <string>
#include <string_view>

#include "nostr/event_id.hpp"
#include "nostr/event_parse.hpp"
#include "require.hpp"

namespace {

using namespace todoke::nostr;
using todoke::fuzz::require;

bool same_tags(const Event& a, const Event& b) {
  if (a.tag_count() != b.tag_count()) return false;
  auto other = b.tags().begin();
  for (const auto tag : a.tags()) {
    const auto twin = *other;
    ++other;
    if (tag.size() != twin.size()) return false;
    for (std::size_t i = 0; i < tag.size(); ++i) {
      if (tag[i] != twin[i]) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto split = input.find('\0');
  std::string text = R"({"id":")" + std::string(64, 'a') + R"(","pubkey":")" + std::string(64, 'b');
  text += R"(","created_at":1700000000,"kind":1,"tags":)";
  text += input.substr(0, split);
  text += R"(,"content":)";
  text += split == std::string_view::npos ? R"("")" : input.substr(split + 1);
  text += R"(,"sig":")" + std::string(128, 'c') + R"("})";

  const auto event = parse_event(text, {});
  if (!event) return 0;
  require(compute_id(*event) == hash_of(canonical_text(*event)));
  const auto again = parse_event(event->json(), {});
  require(again.has_value());
  require(again->json() == event->json());
  require(again->content() == event->content());
  require(same_tags(*event, *again));
  require(compute_id(*again) == compute_id(*event));

  std::string row;
  append_event_json(row, event->id(), event->pubkey(), event->created_at(), event->kind(), event->tags_json(),
                    event->content(), event->sig());
  const auto stored = parse_event(row, {});
  require(stored && compute_id(*stored) == compute_id(*event));
  return 0;
}
