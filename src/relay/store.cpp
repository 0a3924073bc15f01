#include "relay/store.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "base/hash_table.hpp"
#include "nostr/tag_keys.hpp"
#include "relay/store_sql.hpp"

namespace todoke::relay {
namespace {

using nostr::KindClass;

// Stands between the topics of an event; no topic id has it.
constexpr char kTopicSeparator = '\x1f';

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The last second that timestamptz can say, in the year 294276. A later expiration is as good as this one.
constexpr std::int64_t kExpiryMax = 9'224'318'015'999;

std::string join_topics(const std::vector<std::string>& topics) {
  std::string text;
  for (const auto& topic : topics) {
    if (!text.empty()) text += kTopicSeparator;
    text += topic;
  }
  return text;
}

std::string join_keys(const std::vector<nostr::Pubkey>& keys) {
  std::string text;
  for (const auto& key : keys) {
    if (!text.empty()) text += ',';
    text += key.hex();
  }
  return text;
}

// The parameters of store_events: one array for each column.
class Columns {
 public:
  explicit Columns(std::size_t events) {
    ids_.reserve(events);
    pubkeys_.reserve(events);
    sigs_.reserve(events);
  }

  void add(const Incoming& incoming) {
    const auto& event = *incoming.event;
    ids_.push_back(event.id().hex());
    pubkeys_.push_back(event.pubkey().hex());
    kinds_.push_back(event.kind());
    times_.push_back(event.created_at());
    tags_.push_back(event.tags_json());
    sigs_.push_back(event.sig().hex());
    expiries_.push_back(incoming.expires_at);
    if (expiries_.back() > kExpiryMax) expiries_.back() = kExpiryMax;
    if (has_nul(event)) {
      contents_.push_back(without_nul(event.content()));
      const auto json = event.json();
      raws_.emplace_back(std::vector<std::uint8_t>(json.begin(), json.end()));
    } else {
      contents_.emplace_back(event.content());
      raws_.emplace_back();
    }
    const std::string_view lifetime = incoming.kept ? "k" : "r";
    lifetimes_.push_back(lifetime);
    sources_.push_back(to_string(incoming.source));
    const auto kind_class = nostr::class_of(event.kind());
    if (incoming.effective_key.empty()) {
      classes_.emplace_back();
      keys_.emplace_back();
      jsons_.emplace_back();
    } else {
      classes_.emplace_back(kind_class == KindClass::replaceable ? "r" : "a");
      keys_.emplace_back(incoming.effective_key);
      jsons_.emplace_back(event.json());
    }
    topics_.push_back(join_topics(incoming.topics));
    non_public_.push_back(incoming.non_public);
    linked_.push_back(incoming.linked);
    recipients_.push_back(incoming.recipients.empty() ? std::nullopt
                                                      : std::optional(join_keys(incoming.recipients)));
    keep_days_.push_back(incoming.dedupe_days);
    add_tags(incoming, lifetime);
  }

  [[nodiscard]] pg::Params params() const {
    return {ids_,           pubkeys_,    kinds_,     times_,     tags_,       contents_,  sigs_,
            expiries_,      raws_,       lifetimes_, sources_,   classes_,    keys_,      jsons_,
            topics_,        non_public_, tag_ords_,  tag_names_, tag_values_, tag_times_, tag_ids_,
            tag_lifetimes_, recipients_, linked_,    keep_days_};
  }

 private:
  void add_tags(const Incoming& incoming, std::string_view lifetime) {
    const HashSet<std::string_view> linked(incoming.topics.begin(), incoming.topics.end());
    for (auto& key : nostr::tag_keys_of(*incoming.event)) {
      const bool is_link = incoming.linked && key.letter == 't' && linked.contains(key.value);
      if (!is_link) add_tag(incoming, key.letter, std::move(key.value), lifetime);
    }
    if (incoming.own) add_tag(incoming, kOwnMark, incoming.event->pubkey().hex(), lifetime);
  }

  void add_tag(const Incoming& incoming, char letter, std::string value, std::string_view lifetime) {
    tag_ords_.push_back(static_cast<std::int32_t>(ids_.size()));
    tag_names_.emplace_back(1, letter);
    tag_values_.push_back(std::move(value));
    tag_times_.push_back(incoming.event->created_at());
    tag_ids_.push_back(ids_.back());
    tag_lifetimes_.push_back(lifetime);
  }

  std::vector<std::string> ids_;
  std::vector<std::string> pubkeys_;
  std::vector<std::int32_t> kinds_;
  std::vector<std::int64_t> times_;
  std::vector<std::string_view> tags_;
  std::vector<std::string> contents_;
  std::vector<std::string> sigs_;
  std::vector<std::optional<std::int64_t>> expiries_;
  std::vector<std::optional<std::vector<std::uint8_t>>> raws_;
  std::vector<std::string_view> lifetimes_;
  std::vector<std::string_view> sources_;
  std::vector<std::optional<std::string_view>> classes_;
  std::vector<std::optional<std::string_view>> keys_;
  std::vector<std::optional<std::string_view>> jsons_;
  std::vector<std::string> topics_;
  std::vector<bool> non_public_;
  std::vector<std::optional<std::int32_t>> keep_days_;  // of the dedupe row
  std::vector<std::int32_t> tag_ords_;
  std::vector<std::string> tag_names_;
  std::vector<std::string> tag_values_;
  std::vector<std::int64_t> tag_times_;
  std::vector<std::string> tag_ids_;
  std::vector<std::string_view> tag_lifetimes_;
  std::vector<std::optional<std::string>> recipients_;
  std::vector<bool> linked_;
};

// The parameters of apply_deletions: one row for each target.
class Targets {
 public:
  void add(const Incoming& incoming) {
    for (const auto& id : incoming.targets.events) add_row(incoming, id.hex(), std::nullopt);
    for (const auto& key : incoming.target_keys) add_row(incoming, std::nullopt, key);
  }
  [[nodiscard]] bool empty() const { return deletions_.empty(); }
  [[nodiscard]] pg::Params params() const { return {deletions_, pubkeys_, times_, ids_, keys_, keep_days_}; }

 private:
  void add_row(const Incoming& incoming, std::optional<std::string> id, std::optional<std::string> key) {
    deletions_.push_back(incoming.event->id().hex());
    pubkeys_.push_back(incoming.event->pubkey().hex());
    times_.push_back(incoming.event->created_at());
    ids_.push_back(std::move(id));
    keys_.push_back(std::move(key));
    keep_days_.push_back(incoming.tombstone_days);
  }

  std::vector<std::string> deletions_;
  std::vector<std::string> pubkeys_;
  std::vector<std::int64_t> times_;
  std::vector<std::optional<std::string>> ids_;
  std::vector<std::optional<std::string>> keys_;
  std::vector<std::optional<std::int32_t>> keep_days_;
};

// The parameters of request_vanish: one row for each request.
class VanishRequests {
 public:
  void add(const Incoming& incoming) {
    if (incoming.event->kind() != nostr::kVanish) return;
    ids_.push_back(incoming.event->id().hex());
    pubkeys_.push_back(incoming.event->pubkey().hex());
    times_.push_back(incoming.event->created_at());
  }
  [[nodiscard]] bool empty() const { return ids_.empty(); }
  [[nodiscard]] pg::Params params() const { return {ids_, pubkeys_, times_}; }

 private:
  std::vector<std::string> ids_;
  std::vector<std::string> pubkeys_;
  std::vector<std::int64_t> times_;
};

Outcome outcome_of(std::int32_t verdict) {
  switch (verdict) {
    case 0:
      return Outcome::stored;
    case 1:
      return Outcome::duplicate;
    case 2:
      return Outcome::newer_version;
    case 3:
      return Outcome::deleted;
    case 4:
      return Outcome::vanished;
    case 5:
      return Outcome::author_blocked;
    case 6:
      return Outcome::event_blocked;
    case 7:
      return Outcome::topic_blocked;
    default:
      throw std::logic_error("store_events gave an unknown verdict");
  }
}

Gone gone(std::string_view id, std::int64_t created_at) {
  return {nostr::EventId::from_hex(id).value(), created_at};
}

Appended read_appended(const pg::Result& locked, const pg::Result& head) {
  auto log = read_lock(locked);
  log.head = {head.one().get<std::int64_t>(0)};
  return log;
}

void read_gone(const pg::Result& rows, Appended& log) {
  for (const auto& row : rows)
    log.gone.push_back(gone(row.get<std::string_view>(0), row.get<std::int64_t>(1)));
}

void read_stored(const pg::Result& result, StoredBatch& stored) {
  const auto row = result.one();
  const auto seqs = row.get<std::optional<std::vector<std::int64_t>>>("seqs");
  std::size_t next = 0;
  for (const auto verdict : row.get<std::vector<std::int32_t>>("verdicts")) {
    stored.outcomes.push_back(outcome_of(verdict));
    stored.seqs.push_back({verdict == 0 ? seqs.value().at(next++) : 0});
  }
  const auto ids = row.get<std::optional<std::vector<std::string>>>("replaced_ids");
  if (!ids) return;
  const auto times = row.get<std::vector<std::int64_t>>("replaced_times");
  for (std::size_t i = 0; i < ids->size(); ++i) stored.log.gone.push_back(gone((*ids)[i], times.at(i)));
}

}  // namespace

Appended read_lock(const pg::Result& locked) {
  const auto row = locked.one();
  Appended log;
  log.lock_waited = std::chrono::duration<double>(row.get<double>("waited"));
  log.head_before = {row.get<std::int64_t>("head")};
  log.head = log.head_before;
  log.since = {row.get<std::int64_t>("since")};
  log.moved = row.get<bool>("moved");
  log.committed_at = std::chrono::steady_clock::now();
  return log;
}

std::string without_nul(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\0') {
      out += kReplacement;
    } else {
      out += c;
    }
  }
  return out;
}

bool has_nul(const nostr::Event& event) {
  constexpr auto kNone = std::string_view::npos;
  if (event.content().find('\0') != kNone) return true;
  if (event.tags_json().find("\\u0000") == kNone) return false;
  for (const auto tag : event.tags()) {
    for (std::size_t i = 0; i < tag.size(); ++i) {
      if (tag[i].find('\0') != kNone) return true;
    }
  }
  return false;
}

pg::ConnectOptions writer_options(pg::ConnectOptions options) {
  options.settings.emplace_back("options",
                                "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off "
                                "-c enable_bitmapscan=off -c plan_cache_mode=force_generic_plan -c jit=off "
                                "-c lock_timeout=3000");
  options.application_name = "todoke writer";
  return options;
}

Task<Appended> check_log(pg::Connection& connection, nostr::Seq seen, Deadline deadline) {
  const auto locked = co_await connection.query(sql::kLockLog, {seen.value}, deadline);
  co_return read_lock(locked);
}

Task<StoredBatch> store(pg::Connection& connection, std::span<const Incoming> batch, nostr::Seq seen,
                        Deadline deadline) {
  Columns columns(batch.size());
  Targets targets;
  VanishRequests vanish;
  for (const auto& incoming : batch) {
    columns.add(incoming);
    targets.add(incoming);
    vanish.add(incoming);
  }
  pg::Batch work;
  work.add(sql::kLockLog, {seen.value});
  work.add(sql::kStoreEvents, columns.params());
  if (!targets.empty()) work.add(sql::kApplyDeletions, targets.params());
  if (!vanish.empty()) work.add(sql::kRequestVanish, vanish.params());
  work.add(sql::kLogHead);
  const auto results = co_await connection.run(std::move(work), deadline);

  StoredBatch stored;
  stored.log = read_appended(results.front(), results.back());
  read_stored(results.at(1), stored);
  if (!targets.empty()) read_gone(results.at(2), stored.log);
  co_return stored;
}

Task<Appended> sweep_expired(pg::Connection& connection, std::int32_t events_max, nostr::Seq seen,
                             Deadline deadline) {
  pg::Batch work;
  work.add(sql::kLockLog, {seen.value});
  work.add(sql::kSweepExpired, {events_max});
  work.add(sql::kLogHead);
  const auto results = co_await connection.run(std::move(work), deadline);
  auto log = read_appended(results.front(), results.back());
  read_gone(results.at(1), log);
  co_return log;
}

Task<Appended> erase_events(pg::Connection& connection, const EraseKeys& keys, std::string reason,
                            nostr::Seq seen, Deadline deadline) {
  pg::Batch work;
  work.add(sql::kLockLog, {seen.value});
  work.add(sql::kEraseEvents, {keys.ids, keys.times, keys.lifetimes, reason});
  work.add(sql::kForgetDeadLetters, {keys.ids});
  work.add(sql::kLogHead);
  const auto results = co_await connection.run(std::move(work), deadline);
  auto log = read_appended(results.front(), results.back());
  read_gone(results.at(1), log);
  co_return log;
}

}  // namespace todoke::relay
