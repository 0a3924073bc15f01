// Inside this room's tests: events and texts to work on.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nostr/event_parse.hpp"
#include "nostr/signature.hpp"

namespace todoke::nostr::test {

using Tags = std::vector<std::vector<std::string>>;

inline constexpr std::int64_t kNow = 1'700'000'000;
inline const std::string kHexA(64, 'a');
inline const std::string kHexB(64, 'b');
inline const std::string kTopic = "kukuri:" + kHexA;

inline const SecretKey& alice() {
  static const auto key = *SecretKey::from_hex(std::string(63, '0') + "3");
  return key;
}

inline Event event_with(Kind kind, Tags tags, std::string content = "hello", std::int64_t created_at = kNow) {
  return sign_event({created_at, kind, std::move(tags), std::move(content)}, alice());
}

// Tags of an event as plain values.
inline Tags tags_of(const Event& event) {
  Tags tags;
  for (const auto tag : event.tags()) {
    auto& values = tags.emplace_back();
    for (std::size_t i = 0; i < tag.size(); ++i) values.emplace_back(tag[i]);
  }
  return tags;
}

// An event's JSON with one piece of its text replaced.
inline std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  const auto at = out.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  if (at != std::string::npos) out.replace(at, what.size(), by);
  return out;
}

inline Event parsed(std::string_view text, const EventLimits& limits = {}) {
  auto event = parse_event(text, limits);
  if (!event) throw std::runtime_error("refused: " + std::string(text_of(event.error().reason)));
  return std::move(*event);
}

inline std::string_view refusal(std::string_view text, const EventLimits& limits = {}) {
  const auto event = parse_event(text, limits);
  return event ? "" : text_of(event.error().reason);
}

}  // namespace todoke::nostr::test
