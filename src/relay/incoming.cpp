#include "relay/incoming.hpp"

namespace todoke::relay {

std::string_view to_string(Source source) {
  switch (source) {
    case Source::ws:
      return "ws";
    case Source::api:
      return "api";
    case Source::gossip:
      return "gossip";
    case Source::backfill:
      return "backfill";
    case Source::import:
      return "import";
    case Source::node:
      return "node";
  }
  return "";
}

}  // namespace todoke::relay
