// Random events and random filters: what the relay has stored, what it sends live and what a naive matcher
// says must be the same. A failure prints its seed; TODOKE_TEST_SEED=<number> runs that one again.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "naive_matcher.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

constexpr std::size_t kStored = 160;
constexpr std::size_t kRequests = 120;
constexpr std::size_t kLimitDefault = 40;  // low, so that it cuts
constexpr nostr::Kind kLast = 9'999;       // told apart from all random ones

const std::vector<std::string>& topics() {
  static const std::vector<std::string> kTopics = {"kukuri:global", topic('1'), topic('2')};
  return kTopics;
}

bool is_in(const std::string& id, const Ids& ids) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Request {
  std::vector<NaiveFilter> filters;
  [[nodiscard]] std::string json() const {
    std::string text;
    for (const auto& filter : filters) text += (text.empty() ? "" : ",") + filter.json();
    return text;
  }
};

// Who asks: the keys that they prove.
struct Viewer {
  std::vector<SecretKey> keys = {};
  [[nodiscard]] Ids hexes() const {
    Ids all;
    for (const auto& key : keys) all.push_back(hex_of(key));
    return all;
  }
  [[nodiscard]] bool sees(const NaiveEvent& event) const { return may_see(event, hexes()); }
  [[nodiscard]] bool is_refused(const Request& request) const {
    return keys.empty() && asks_for_private_only(request.filters);
  }
  void prove_to(NostrClient& client) const {
    for (const auto& key : keys) EXPECT_TRUE(client.authenticate(key).accepted);
  }
};

constexpr auto kRefused = "auth-required: authenticate first";

std::vector<NaiveEvent> visible(std::vector<NaiveEvent> events, const Viewer& viewer) {
  std::erase_if(events, [&](const auto& event) { return !viewer.sees(event); });
  return events;
}

// Few values of everything, so that they meet.
class Dice {
 public:
  Dice(std::uint64_t seed, bool open) : random_(seed), open_(open) {
    for (int i = 0; i < 4; ++i)
      keys_.push_back(SecretKey::from_hex(fmt::format("{:064x}", below(1 << 30) + 1)).value());
    for (const auto* digits : {"0", "f"}) hexes_.emplace_back(64, *digits);
    for (const auto& key : keys_) hexes_.push_back(hex_of(key));
  }

  NaiveEvent event() {
    static constexpr nostr::Kind kKinds[] = {1, 1,      1,      7,      7, 1'111, 40'000,
                                             0, 10'002, 30'023, 30'024, 4, 1'059, 1'059};
    const auto kind = kKinds[below(std::size(kKinds))];
    Tags tags;
    if (kind >= 30'000 && kind < 40'000) tags.push_back({"d", one_of(values_)});
    if (!open_ || below(3) > 0) {
      for (std::size_t i = 0; i <= below(3); ++i) tags.push_back({"t", one_of(topics())});
    }
    for (std::size_t i = below(5); i > 0; --i) tags.push_back(tag());
    std::shuffle(tags.begin(), tags.end(), random_);
    // The first d is the address: one that was shuffled away is no harm.
    const auto time = kTime + static_cast<std::int64_t>(below(12));
    return sign(one_of(keys_), kind, time, std::move(tags));
  }

  NaiveEvent sign(const SecretKey& key, nostr::Kind kind, std::int64_t time, Tags tags) {
    const auto signed_event = nostr::sign_event({time, kind, tags, std::to_string(++signed_)}, key);
    return {hex_of(signed_event), hex_of(key), kind, time, std::move(tags), std::string(signed_event.json())};
  }
  NaiveEvent last(std::int64_t time) { return sign(keys_.front(), kLast, time, {{"t", "kukuri:global"}}); }

  Request request(const std::vector<NaiveEvent>& events) {
    Request request;
    for (std::size_t i = 0; i <= below(3); ++i) request.filters.push_back(filter(events));
    return request;
  }

  NaiveFilter filter(const std::vector<NaiveEvent>& events) {
    NaiveFilter filter;
    if (below(8) == 0) {
      filter.ids.emplace();
      for (std::size_t i = below(6); i > 0; --i) filter.ids->push_back(one_of(events).id);
    }
    if (below(4) == 0) {
      filter.authors.emplace();
      for (std::size_t i = below(12) == 0 ? 0 : 1 + below(3); i > 0; --i) {
        filter.authors->push_back(below(8) == 0 ? one_of(hexes_) : hex_of(one_of(keys_)));
      }
    }
    if (below(4) == 0) {
      filter.kinds.emplace();
      for (std::size_t i = below(12) == 0 ? 0 : 1 + below(4); i > 0; --i)
        filter.kinds->push_back(one_of(events).kind);
    }
    if (!open_ || below(3) == 0) filter.tags['t'] = t_values();
    for (std::size_t i = below(3); i > 0; --i) {
      const auto letter = one_of(letters_);
      filter.tags[letter] = tag_values(letter);
    }
    if (below(4) == 0) filter.since = kTime + static_cast<std::int64_t>(below(12));
    if (below(4) == 0) filter.until = kTime + static_cast<std::int64_t>(below(12));
    if (below(2) == 0) filter.limit = below(4) == 0 ? below(200) : below(12);
    return filter;
  }

  // Nobody, one key of the authors, and two of them.
  [[nodiscard]] std::vector<Viewer> viewers() const { return {{}, {{keys_[0]}}, {{keys_[1], keys_[2]}}}; }

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

 private:
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::vector<std::string> tag() {
    if (below(6) == 0) return one_of(odd_tags_);
    const auto letter = one_of(letters_);
    const bool hex = letter == 'e' || letter == 'p';
    return {std::string(1, letter), one_of(hex ? hexes_ : values_), one_of(values_)};
  }
  std::vector<std::string> t_values() {
    std::vector<std::string> list;
    // With topics an empty list is refused.
    for (std::size_t i = open_ && below(20) == 0 ? 0 : 1 + below(2); i > 0; --i) {
      list.push_back(open_ && below(3) == 0 ? one_of(values_) : one_of(topics()));
    }
    return list;
  }
  std::vector<std::string> tag_values(char letter) {
    std::vector<std::string> list;
    const bool hex = letter == 'e' || letter == 'p';
    for (std::size_t i = below(20) == 0 ? 0 : 1 + below(3); i > 0; --i)
      list.push_back(one_of(hex ? hexes_ : values_));
    return list;
  }

  std::mt19937_64 random_;
  bool open_;
  std::uint64_t signed_ = 0;
  std::vector<SecretKey> keys_;
  std::vector<std::string> hexes_;
  std::vector<char> letters_ = {'e', 'p', 'x', 'X', 'd', 'r'};
  std::vector<std::string> values_ = {"a",   "b", "A", "", std::string("a\0b", 3), std::string(300, 'v'),
                                      "日本"};
  std::vector<std::vector<std::string>> odd_tags_ = {
      {}, {"x"}, {"xx", "a"}, {"", "a"}, {"t", "a"}, {"t", "b"}, {"e", "a"}, {"-x", "a"}, {"é", "a"}};
};

struct RelayMode {
  std::string name;
  std::uint64_t seed = 0;
  Flags flags;
  bool open = false;
  bool memory = false;

  friend void PrintTo(const RelayMode& mode, std::ostream* out) { *out << mode.name; }
};

class DifferentialTest : public testing::TestWithParam<RelayMode> {
 protected:
  static Flags flags() {
    auto flags = GetParam().flags;
    flags.emplace_back("relay.limit_default", std::to_string(kLimitDefault));
    flags.emplace_back("relay.subscriptions_max", "1000");
    return flags;
  }
  static std::uint64_t seed() {
    const char* chosen = std::getenv("TODOKE_TEST_SEED");
    return chosen == nullptr ? GetParam().seed : std::stoull(chosen);
  }

  void SetUp() override {
    if (GetParam().open) return;
    enable_topic(rig, topic('1'));
    enable_topic(rig, topic('2'));
  }

  // Sends them one after the other; those that were taken.
  std::vector<NaiveEvent> publish(const std::vector<NaiveEvent>& events) {
    NostrClient client(rig.url());
    std::vector<NaiveEvent> taken;
    for (const auto& event : events) {
      const auto ok = client.publish_json(event.json);
      const bool replaced =
          !naive_address(event).empty() && std::any_of(taken.begin(), taken.end(), [&](const auto& other) {
            return naive_address(other) == naive_address(event) && wins(other, event);
          });
      EXPECT_EQ(ok.accepted, !replaced) << ok.text << ' ' << event.json;
      if (ok.accepted) taken.push_back(event);
    }
    return taken;
  }

  std::map<std::string, std::int64_t> seqs() {
    std::map<std::string, std::int64_t> all;
    for (const auto& row : rig.sql("SELECT event_id, ingested_seq FROM cn_relay.events")) {
      all.emplace(row.substr(0, 64), std::stoll(row.substr(65)));
    }
    return all;
  }

  void compare_stored(const std::vector<Request>& requests, const std::vector<NaiveEvent>& all,
                      const Viewer& viewer) {
    NostrClient client(rig.url());
    viewer.prove_to(client);
    const auto effective = visible(all, viewer);
    for (const auto& request : requests) {
      if (viewer.is_refused(request)) {
        EXPECT_EQ(client.stored(request.json()).closed, kRefused) << request.json();
        EXPECT_EQ(client.count("c", request.json()), fmt::format(R"(["CLOSED","c","{}"])", kRefused));
        continue;
      }
      const auto wanted = naive_answer(effective, request.filters, kLimitDefault);
      const auto answer = client.stored(request.json());
      EXPECT_EQ(answer.closed, "") << request.json();
      EXPECT_EQ(answer.ids, wanted.ids) << request.json();
      EXPECT_EQ(answer.has_more(), wanted.more) << request.json();
      const auto count = std::count_if(effective.begin(), effective.end(),
                                       [&](const auto& event) { return passes_any(event, request.filters); });
      EXPECT_EQ(client.count("c", request.json()), fmt::format(R"(["COUNT","c",{{"count":{}}}])", count))
          << request.json();
    }
  }

  // Asks for each topic until the answer comes from memory.
  void fill_windows() {
    NostrClient client(rig.url());
    for (const auto& id : topics()) {
      const auto before = rig.metric("todoke_query_memory_total");
      ASSERT_TRUE(await([&] {
        client.stored(fmt::format(R"({{"#t":["{}"],"limit":1}})", id));
        return rig.metric("todoke_query_memory_total") > before;
      })) << id;
    }
  }

  void compare_by_seq(const std::vector<Request>& requests, const std::vector<NaiveEvent>& all, Dice& dice,
                      const Viewer& viewer) {
    NostrClient client(rig.url());
    viewer.prove_to(client);
    const auto effective = visible(all, viewer);
    const auto seq_of = seqs();
    const auto head = std::stoull(rig.value("SELECT max(seq) FROM cn_relay.events_outbox"));
    for (const auto& request : requests) {
      auto filter = request.filters.front();
      if (viewer.is_refused({{filter}})) continue;
      filter.seq_after = static_cast<std::int64_t>(dice.below(head + 1));
      const auto wanted = naive_answer_by_seq(effective, filter, seq_of, kLimitDefault);
      const auto answer = client.stored(filter.json());
      EXPECT_EQ(answer.ids, wanted.ids) << filter.json();
      EXPECT_EQ(answer.has_more(), wanted.more) << filter.json();
    }
  }

  RelayRig rig{flags()};
};

// One subscription for each request on a connection of its own; what each got until the last event came.
class LiveReader {
 public:
  LiveReader(const std::string& url, const std::vector<Request>& requests, const Viewer& viewer)
      : client_(url), got_(requests.size()) {
    viewer.prove_to(client_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto answer = client_.request(fmt::format("r{}", i), requests[i].json());
      EXPECT_EQ(answer.closed, viewer.is_refused(requests[i]) ? kRefused : "") << requests[i].json();
      EXPECT_THAT(answer.ids, IsEmpty());
    }
    client_.request("last", global_and(fmt::format(R"("kinds":[{}])", kLast)));
    thread_ = std::thread([this] { read(); });
  }
  ~LiveReader() { join(); }

  // All that came for request number `i`, in order.
  const Ids& got(std::size_t i) {
    join();
    return got_[i];
  }

 private:
  void read() {
    static constexpr std::string_view kStart = R"(["EVENT",")";
    for (;;) {
      const auto message = client_.receive();
      const auto quote = message.find('"', kStart.size());
      const auto sub = message.substr(kStart.size(), quote - kStart.size());
      if (sub == "last") return;
      got_.at(std::stoul(sub.substr(1))).push_back(id_in(message));
    }
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  NostrClient client_;
  std::vector<Ids> got_;
  std::thread thread_;
};

INSTANTIATE_TEST_SUITE_P(, DifferentialTest,
                         testing::Values(RelayMode{"Tables", 1, {{"relay.cache_bytes", "0"}}},
                                         RelayMode{"Memory", 2, {}, false, true},
                                         RelayMode{
                                             "SmallMemory", 3, {{"relay.cache_events", "20"}}, false, true},
                                         RelayMode{"OpenTables", 4, kOpenTables, true},
                                         RelayMode{"OpenMemory", 5, kOpen, true, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(DifferentialTest, StoredLiveAndNaiveAgree) {
  SCOPED_TRACE(fmt::format("TODOKE_TEST_SEED={}", seed()));
  Dice dice(seed(), GetParam().open);
  std::vector<NaiveEvent> events;
  for (std::size_t i = 0; i < kStored; ++i) events.push_back(dice.event());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kRequests; ++i) requests.push_back(dice.request(events));

  const auto viewers = dice.viewers();
  std::deque<LiveReader> live;
  for (const auto& viewer : viewers) live.emplace_back(rig.url(), requests, viewer);
  const auto taken = publish(events);
  const auto last = dice.last(kTime + 20);
  publish({last});

  auto effective = naive_effective(taken);
  for (std::size_t v = 0; v < viewers.size(); ++v) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto got = live[v].got(i);
      std::erase(got, last.id);
      // A version that has been replaced by the time of its delivery may be left out.
      const auto may_miss = [&](const NaiveEvent& event) {
        return !is_in(event.id, got) && std::none_of(effective.begin(), effective.end(),
                                                     [&](const auto& other) { return other.id == event.id; });
      };
      Ids wanted;
      for (const auto& event : taken) {
        if (viewers[v].is_refused(requests[i]) || !viewers[v].sees(event)) continue;
        if (passes_any(event, requests[i].filters) && !may_miss(event)) wanted.push_back(event.id);
      }
      EXPECT_EQ(got, wanted) << requests[i].json() << " for viewer " << v;
    }
  }
  effective.push_back(last);
  for (const auto& viewer : viewers) {
    compare_stored(requests, effective, viewer);
    compare_by_seq(requests, effective, dice, viewer);
  }

  // What was stored before the start comes from the tables, into the windows too.
  rig.stop();
  rig.start();
  for (const auto& viewer : viewers) compare_stored(requests, effective, viewer);
  if (GetParam().memory) fill_windows();
  if (HasFatalFailure()) return;
  for (const auto& viewer : viewers) compare_stored(requests, effective, viewer);
}

}  // namespace
}  // namespace todoke::test
