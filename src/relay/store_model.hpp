// Inside tests: the store as a single-threaded model of its rules.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nostr/recipients.hpp"
#include "nostr/tag_keys.hpp"
#include "relay/cost.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay::test {

// What store.sql does, in memory: one event after the other, or a batch at once. At once means that no part
// sees what another part does, and what Postgres refuses (one row written twice by one statement) throws.
class StoreModel {
 public:
  Outcome take_one(const Incoming& incoming) { return take_together({incoming}).front(); }

  std::vector<Outcome> take_together(const std::vector<Incoming>& batch) {
    std::vector<Outcome> outcomes;
    for (const auto& incoming : batch) outcomes.push_back(verdict(incoming));
    std::vector<const Incoming*> deletions;
    std::set<std::string> keys;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (outcomes[i] != Outcome::stored) continue;
      write_once(keys, batch[i].effective_key);
      insert(batch[i]);
      deletions.push_back(&batch[i]);
    }
    apply(deletions);
    return outcomes;
  }

  // What others can see in the end. Of a deleted event it does not matter whether it had been replaced
  // before.
  struct State {
    std::map<nostr::EventId, std::string> events;
    std::map<std::string, std::pair<nostr::EventId, bool>> versions;
    std::set<std::pair<nostr::EventId, nostr::Pubkey>> id_tombs;
    std::map<std::string, std::int64_t> key_tombs;
    std::map<nostr::Pubkey, std::int64_t> vanished;
    bool operator==(const State&) const = default;
  };
  [[nodiscard]] State state() const {
    State state{{}, {}, id_tombs_, key_tombs_, vanished_};
    for (const auto& [id, row] : rows_) {
      state.events[id] = row.deleted ? "deleted" : row.superseded ? "superseded" : "in effect";
    }
    for (const auto& [key, version] : versions_)
      state.versions.emplace(key, std::pair(version.id, version.gone));
    return state;
  }

 private:
  struct Row {
    nostr::Pubkey author;
    nostr::Kind kind;
    std::string key;
    std::vector<nostr::Pubkey> recipients;
    bool deleted = false;
    bool superseded = false;
  };
  struct Version {
    nostr::EventId id;
    std::int64_t created_at;
    bool gone = false;
  };

  static void write_once(std::set<std::string>& written, const std::string& key) {
    if (!key.empty() && !written.insert(key).second) throw std::logic_error("twice in one batch: " + key);
  }

  [[nodiscard]] Outcome verdict(const Incoming& incoming) const {
    const auto& event = *incoming.event;
    const bool requests = event.kind() == nostr::kDeletion || event.kind() == nostr::kVanish;
    if (event.kind() != nostr::kVanish && has_vanished(event.pubkey(), event)) return Outcome::vanished;
    for (const auto& recipient : incoming.recipients) {
      if (has_vanished(recipient, event)) return Outcome::vanished;
    }
    if (!requests && id_tombs_.contains({event.id(), event.pubkey()})) return Outcome::deleted;
    for (const auto& recipient : incoming.recipients) {
      if (id_tombs_.contains({event.id(), recipient})) return Outcome::deleted;
    }
    if (const auto tomb = key_tombs_.find(incoming.effective_key);
        tomb != key_tombs_.end() && tomb->second >= event.created_at()) {
      return Outcome::deleted;
    }
    if (const auto version = versions_.find(incoming.effective_key); version != versions_.end()) {
      const auto& there = version->second;
      const bool there_is_newer = there.created_at > event.created_at() ||
                                  (there.created_at == event.created_at() && there.id < event.id());
      if (there.id != event.id() && there_is_newer) return Outcome::newer_version;
    }
    return rows_.contains(event.id()) ? Outcome::duplicate : Outcome::stored;
  }

  [[nodiscard]] bool has_vanished(const nostr::Pubkey& person, const nostr::Event& event) const {
    const auto until = vanished_.find(person);
    return until != vanished_.end() && until->second >= event.created_at();
  }

  void insert(const Incoming& incoming) {
    const auto& event = *incoming.event;
    const auto& key = incoming.effective_key;
    const Row row{event.pubkey(), event.kind(), key, incoming.recipients};
    if (event.kind() == nostr::kVanish) {
      auto& until = vanished_.try_emplace(event.pubkey(), event.created_at()).first->second;
      until = std::max(until, event.created_at());
    }
    if (!rows_.emplace(event.id(), row).second) throw std::logic_error("an event was stored twice");
    if (key.empty()) return;
    const auto there = versions_.find(key);
    if (there != versions_.end() && !there->second.gone) rows_.at(there->second.id).superseded = true;
    versions_.insert_or_assign(key, Version{event.id(), event.created_at()});
  }

  void apply(const std::vector<const Incoming*>& deletions) {
    std::set<nostr::EventId> hit;
    for (const auto* deletion : deletions) {
      for (const auto& id : deletion->targets.events) {
        const auto row = rows_.find(id);
        if (row == rows_.end() || row->second.kind == nostr::kDeletion ||
            row->second.kind == nostr::kVanish) {
          continue;
        }
        const auto& to = row->second.recipients;
        const auto& by = deletion->event->pubkey();
        if (row->second.author == by || std::find(to.begin(), to.end(), by) != to.end()) hit.insert(id);
      }
      for (const auto& key : deletion->target_keys) {
        const auto version = versions_.find(key);
        if (version == versions_.end() || version->second.gone) continue;
        if (version->second.created_at <= deletion->event->created_at()) hit.insert(version->second.id);
      }
    }
    for (const auto& id : hit) {
      auto& row = rows_.at(id);
      row.deleted = true;
      const auto version = versions_.find(row.key);
      if (version != versions_.end() && version->second.id == id) version->second.gone = true;
    }
    std::set<std::string> keys;
    for (const auto* deletion : deletions) {
      for (const auto& id : deletion->targets.events) id_tombs_.emplace(id, deletion->event->pubkey());
      for (const auto& key : deletion->target_keys) {
        write_once(keys, key);
        auto& until = key_tombs_.try_emplace(key, deletion->event->created_at()).first->second;
        until = std::max(until, deletion->event->created_at());
      }
    }
  }

  std::map<nostr::EventId, Row> rows_;
  std::map<std::string, Version> versions_;
  std::set<std::pair<nostr::EventId, nostr::Pubkey>> id_tombs_;
  std::map<std::string, std::int64_t> key_tombs_;
  std::map<nostr::Pubkey, std::int64_t> vanished_;
};

// As admission makes it.
inline Incoming incoming_of(EventPtr event) {
  Incoming incoming;
  incoming.topics = {"kukuri:global"};
  if (const auto address = nostr::address_of(*event)) incoming.effective_key = nostr::effective_key(*address);
  if (event->kind() == nostr::kDeletion) {
    incoming.targets = nostr::deletion_targets(*event);
    for (const auto& address : incoming.targets.addresses) {
      incoming.target_keys.push_back(nostr::effective_key(address));
    }
  }
  if (event->kind() == nostr::kGiftWrap) incoming.recipients = nostr::recipients_of(*event);
  incoming.rows = rows_of(*event);
  incoming.event = std::move(event);
  return incoming;
}

}  // namespace todoke::relay::test
