// The gossip of a topic, by its id. A topic that the node takes is a topic; of any other text it is the id of
// a gossip that no node joins.
#pragma once

#include <string>

#include "gossip/ids.hpp"

namespace todoke::gossip {

inline ChannelId channel_of(const std::string& topic) {
  const std::string reserved[] = {topic};
  return ChannelId(nostr::gossip_topic_id(*nostr::TopicId::from(topic, reserved)));
}

}  // namespace todoke::gossip
