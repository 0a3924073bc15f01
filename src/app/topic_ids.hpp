// The topic ids that a word of the command line stands for.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "nostr/topics.hpp"

namespace todoke::app {

// Those that topics.mapping names.
std::vector<nostr::TopicMapping> topic_mappings(const Config& config);

// A topic id stands for itself, a name for its id. Throws UserError for what is neither.
nostr::TopicId topic_id(const Config& config, const std::string& text, nostr::TopicMapping mapping);

// By every mapping in use, each id once.
std::vector<nostr::TopicId> topic_ids(const Config& config, const std::string& text);

}  // namespace todoke::app
