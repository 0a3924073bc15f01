// Memory that clients make the process hold until they send the rest of a message, or read what they have
// asked for. Beyond `bytes_max` the client that holds most, over all its connections, gives way: its
// connection that holds most is told to end, and so on until the rest is within the bound. So slow clients
// hold what a connection may as long as they are few, and a client that is quick loses nothing to one that
// spreads over many connections.
//
// Bounded: an entry for each connection that holds something. Costs a lock for each change, and a look at all
// entries for each connection that gives way. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_table.hpp"
#include "base/metrics.hpp"

namespace todoke::net {

class ClientMemory {
 public:
  // `gauge` shows what is held, `dropped` counts connections that gave way.
  ClientMemory(metrics::Gauge& gauge, metrics::Counter& dropped, std::size_t bytes_max)
      : bytes_max_(bytes_max), gauge_(gauge), dropped_(dropped) {}

  // What one connection holds.
  class Holder {
   public:
    // `client` is its network. `give_way` has to end the connection soon; it is called once, on any thread.
    Holder(std::shared_ptr<ClientMemory> memory, std::string client, std::function<void()> give_way)
        : memory_(std::move(memory)), client_(std::move(client)), give_way_(std::move(give_way)) {}
    ~Holder() { give_back(bytes_); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    void reserve(std::size_t bytes) { memory_->reserve(*this, bytes); }
    void give_back(std::size_t bytes) { memory_->give_back(*this, bytes); }
    // So many from now on.
    void hold(std::size_t bytes) { bytes > bytes_ ? reserve(bytes - bytes_) : give_back(bytes_ - bytes); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    friend ClientMemory;
    const std::shared_ptr<ClientMemory> memory_;
    const std::string client_;
    const std::function<void()> give_way_;
    std::size_t bytes_ = 0;
    bool gives_way_ = false;
  };

 private:
  struct Client {
    std::size_t bytes = 0;  // of those that don't give way
    std::vector<Holder*> holders;
  };

  void reserve(Holder& holder, std::size_t more) {
    if (more == 0) return;
    std::vector<std::function<void()>> ends;
    {
      const std::lock_guard lock(mutex_);
      auto& client = clients_[holder.client_];
      if (holder.bytes_ == 0) client.holders.push_back(&holder);
      holder.bytes_ += more;
      bytes_ += more;
      gauge_.set(static_cast<double>(bytes_));
      if (holder.gives_way_) return;
      client.bytes += more;
      staying_ += more;
      while (staying_ > bytes_max_) ends.push_back(choose_one());
    }
    for (const auto& end : ends) end();
  }

  void give_back(Holder& holder, std::size_t less) {
    if (less == 0) return;
    const std::lock_guard lock(mutex_);
    bytes_ -= less;
    gauge_.set(static_cast<double>(bytes_));
    const auto found = clients_.find(holder.client_);
    auto& client = found->second;
    holder.bytes_ -= less;
    if (!holder.gives_way_) {
      client.bytes -= less;
      staying_ -= less;
    }
    if (holder.bytes_ > 0) return;
    std::erase(client.holders, &holder);
    if (client.holders.empty()) clients_.erase(found);
  }

  std::function<void()> choose_one() {
    auto& client = std::max_element(clients_.begin(), clients_.end(), [](const auto& a, const auto& b) {
                     return a.second.bytes < b.second.bytes;
                   })->second;
    const auto held = [](const Holder* holder) { return holder->gives_way_ ? 0 : holder->bytes_; };
    auto& holder = **std::max_element(client.holders.begin(), client.holders.end(),
                                      [&](const Holder* a, const Holder* b) { return held(a) < held(b); });
    holder.gives_way_ = true;
    client.bytes -= holder.bytes_;
    staying_ -= holder.bytes_;
    dropped_.add();
    return holder.give_way_;
  }

  const std::size_t bytes_max_;
  metrics::Gauge& gauge_;
  metrics::Counter& dropped_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::size_t staying_ = 0;  // of those that don't give way
  HashMap<std::string, Client> clients_;
};

}  // namespace todoke::net
