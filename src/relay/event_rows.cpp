#include "relay/event_rows.hpp"

#include <limits>
#include <stdexcept>

#include "nostr/event_parse.hpp"

namespace todoke::relay {
nostr::EventLimits no_limits() {
  constexpr auto kAny = std::numeric_limits<std::size_t>::max();
  return {.event_bytes_max = kAny, .tags_max = kAny, .tag_values_max = kAny, .tags_bytes_max = kAny};
}

LiveEventPtr read_event(const pg::Row& row) {
  std::string json;
  if (const auto raw = row.get<std::optional<pg::ByteView>>("raw")) {
    json.assign(raw->begin(), raw->end());
  } else {
    nostr::append_event_json(json, nostr::EventId::from_hex(row.get<std::string_view>("event_id")).value(),
                             nostr::Pubkey::from_hex(row.get<std::string_view>("pubkey")).value(),
                             row.get<std::int64_t>("created_at"),
                             static_cast<nostr::Kind>(row.get<std::int32_t>("kind")),
                             row.get<std::string_view>("tags"), row.get<std::string_view>("content"),
                             nostr::Signature::from_hex(row.get<std::string_view>("sig")).value());
  }
  static const auto kNoLimits = no_limits();
  auto event = nostr::parse_event(json, kNoLimits);
  if (!event) throw std::runtime_error("a stored event can't be read: " + row.get<std::string>("event_id"));
  LiveEvent live;
  live.event = std::make_shared<const nostr::Event>(std::move(*event));
  live.seq = {row.get<std::int64_t>("ingested_seq")};
  live.expires_at = row.get<std::optional<std::int64_t>>("expires_at");
  live.non_public = row.get<bool>("non_public");
  live.topics = row.get<std::vector<std::string>>("topics");
  return std::make_shared<const LiveEvent>(std::move(live));
}

}  // namespace todoke::relay
