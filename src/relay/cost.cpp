#include "relay/cost.hpp"

#include "nostr/kinds.hpp"

namespace todoke::relay {

std::size_t rows_of(const nostr::Event& event) {
  if (nostr::class_of(event.kind()) == nostr::KindClass::ephemeral) return 0;
  const bool deletes = event.kind() == nostr::kDeletion;
  std::size_t rows = 1;
  for (const auto tag : event.tags()) {
    const auto name = tag.name();
    if (name.size() != 1) continue;
    ++rows;
    if (name == "t" || (deletes && (name == "e" || name == "a"))) ++rows;
  }
  return rows;
}

double cost_of(std::size_t message_bytes, std::size_t rows) {
  const auto tokens = 1 + message_bytes / kTokenBytes + rows / kTokenRows;
  return static_cast<double>(tokens);
}

double cost_of_question(std::size_t message_bytes, std::size_t filters) {
  const auto tokens = filters / kTokenFilters;
  return cost_of(message_bytes) + static_cast<double>(tokens);
}

std::string anonymous_of(const std::string& network) {
  return "anonymous " + network;
}

double cost_of_page(std::size_t rows, std::size_t bytes) {
  return static_cast<double>(rows / kTokenRowsSent + bytes / kTokenBytesSent);
}

double cost_of_count(std::uint64_t rows) {
  return static_cast<double>(rows / kTokenRowsCounted);
}

}  // namespace todoke::relay
