// How many connections each client has open, by its network (client_network.hpp). Bounded by the connections
// that are open. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/hash_table.hpp"
#include "net/client_network.hpp"

namespace todoke::net {

class AddressPlaces : public std::enable_shared_from_this<AddressPlaces> {
 public:
  // `places_max` 0: no limit, and nothing is counted.
  AddressPlaces(std::size_t places_max, NetworkPrefixes prefixes)
      : places_max_(places_max), prefixes_(prefixes) {}

  // A place that is held until this is destroyed.
  class Place {
   public:
    Place(std::shared_ptr<AddressPlaces> places, std::string network)
        : places_(std::move(places)), network_(std::move(network)) {}
    ~Place() { places_->give_back(network_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    std::shared_ptr<AddressPlaces> places_;
    std::string network_;
  };
  using PlacePtr = std::shared_ptr<Place>;

  [[nodiscard]] bool is_limited() const { return places_max_ > 0; }
  // Null: the client has as many as it may. Only where is_limited().
  PlacePtr take(const std::string& ip) {
    auto network = network_of(ip, prefixes_);
    {
      const std::lock_guard lock(mutex_);
      auto& count = counts_[network];
      if (count >= places_max_) return nullptr;
      ++count;
    }
    return std::make_shared<Place>(shared_from_this(), std::move(network));
  }

 private:
  void give_back(const std::string& network) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(network);
    if (--found->second == 0) counts_.erase(found);
  }

  const std::size_t places_max_;
  const NetworkPrefixes prefixes_;
  std::mutex mutex_;
  HashMap<std::string, std::size_t> counts_;
};

}  // namespace todoke::net
