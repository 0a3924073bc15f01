// How many connections each client has open, by its network (client_network.hpp). Bounded by the connections
// that are open; taking a place that is not there allocates nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/hash_table.hpp"
#include "net/client_network.hpp"

namespace todoke::net {

class AddressPlaces : public std::enable_shared_from_this<AddressPlaces> {
 public:
  // `places_max` 0: no limit, and nothing is counted.
  AddressPlaces(std::size_t places_max, NetworkPrefixes prefixes)
      : places_max_(places_max), prefixes_(prefixes) {}

  // Held until this is destroyed.
  class Place {
   public:
    Place(std::shared_ptr<AddressPlaces> places, const IpBytes& network)
        : places_(std::move(places)), network_(network) {}
    Place(Place&&) = default;
    Place& operator=(Place&& other) noexcept {
      std::swap(places_, other.places_);
      std::swap(network_, other.network_);
      return *this;
    }
    ~Place() {
      if (places_) places_->give_back(network_);
    }

   private:
    std::shared_ptr<AddressPlaces> places_;
    IpBytes network_;
  };

  [[nodiscard]] bool is_limited() const { return places_max_ > 0; }
  // Nothing: the client has as many as it may. Only where is_limited().
  std::optional<Place> take(const IpBytes& ip) {
    const auto network = network_of(ip, prefixes_);
    {
      const std::lock_guard lock(mutex_);
      const auto found = counts_.find(Key{network});
      if (found == counts_.end()) {
        counts_.emplace(Key{network}, 1);
      } else if (found->second >= places_max_) {
        return std::nullopt;
      } else {
        ++found->second;
      }
    }
    return Place(shared_from_this(), network);
  }

 private:
  struct Key {
    IpBytes ip;
    [[nodiscard]] std::span<const std::uint8_t> bytes() const { return ip; }
    bool operator==(const Key&) const = default;
  };

  void give_back(const IpBytes& network) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(Key{network});
    if (--found->second == 0) counts_.erase(found);
  }

  const std::size_t places_max_;
  const NetworkPrefixes prefixes_;
  std::mutex mutex_;
  HashMap<Key, std::size_t> counts_;
};

}  // namespace todoke::net
