#include "faults/subscriber.hpp"

#include <algorithm>
#include <stdexcept>

namespace todoke::test {

LiveSubscriber::LiveSubscriber(const std::string& url, const std::string& filter) : client_(url) {
  auto stored = client_.request("live", filter);
  if (!stored.closed.empty()) throw std::runtime_error("refused: " + stored.closed);
  ids_ = std::move(stored.ids);
}

void LiveSubscriber::wait_for(const std::string& id) {
  while (std::find(ids_.begin(), ids_.end(), id) == ids_.end()) ids_.push_back(id_in(client_.live("live")));
}

}  // namespace todoke::test
