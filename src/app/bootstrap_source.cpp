#include "app/bootstrap_source.hpp"

#include <utility>

namespace todoke::app {
namespace {

// Publications that one question looks at; the next one goes on there.
constexpr std::int32_t kHintsMax = 200;

std::vector<users::BootstrapSource::Entry> entries_of(std::vector<bootstrap::SignedEvent> events) {
  std::vector<users::BootstrapSource::Entry> entries;
  for (auto& event : events) entries.push_back({std::move(event.json), event.created_at});
  return entries;
}

}  // namespace

Task<std::vector<users::BootstrapSource::Entry>> BootstrapDirectory::nodes(Deadline deadline) {
  auto events = co_await directory_.nodes(deadline);
  co_return entries_of(std::move(events));
}

Task<std::vector<users::BootstrapSource::Entry>> BootstrapDirectory::topic_services(std::string topic,
                                                                                    Deadline deadline) {
  auto events = co_await directory_.topic_services(std::move(topic), deadline);
  co_return entries_of(std::move(events));
}

Task<users::BootstrapSource::Hints> BootstrapDirectory::hints_after(std::int64_t since, Deadline deadline) {
  auto hints = co_await directory_.hints_after(since, kHintsMax, deadline);
  co_return users::BootstrapSource::Hints{hints.last, entries_of(std::move(hints.events))};
}

}  // namespace todoke::app
