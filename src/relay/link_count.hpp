// A COUNT that needs no events: every filter is decided by the links of events to topics alone. Pure.
//
// One statement looks at each link of the topics once, whatever the number of filters: 20 filters over a
// topic of 60,000 events take 0.1 to 0.7 s of one processor; reading the events for each filter took 20 s.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nostr/filter.hpp"
#include "nostr/rules.hpp"
#include "pg/params.hpp"
#include "relay/visibility.hpp"

namespace todoke::relay {

// The parameters of count_by_links (query.sql); nothing when a filter asks for more than links can tell.
std::optional<pg::Params> link_count(const std::vector<nostr::Filter>& filters, nostr::TopicPolicy policy,
                                     const Viewer& viewer);

// The kinds that only their parties see, for count_by_topic and count_by_links.
std::vector<std::int32_t> private_kinds();

// The text of an SQL array.
std::string array_text(const std::vector<std::string>& values);

}  // namespace todoke::relay
