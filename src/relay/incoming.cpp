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

nostr::Reason reason_of(Outcome outcome) {
  using nostr::Reason;
  switch (outcome) {
    case Outcome::newer_version:
      return Reason::newer_version_stored;
    case Outcome::deleted:
      return Reason::deleted_by_author;
    case Outcome::vanished:
      return Reason::vanished;
    case Outcome::author_blocked:
      return Reason::author_blocked;
    case Outcome::event_blocked:
      return Reason::event_blocked;
    case Outcome::topic_blocked:
      return Reason::topic_blocked;
    case Outcome::stored:
    case Outcome::duplicate:
      return Reason::already_stored;
    case Outcome::storage_full:
      return Reason::storage_full;
    case Outcome::full:
      return Reason::capacity;
    case Outcome::failed:
      break;
  }
  return Reason::not_stored;
}

}  // namespace todoke::relay
