#include "gossip/filler.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "gossip/channel.hpp"

namespace todoke::gossip {
namespace {

using outbox::FillSpan;
using outbox::FillView;
using outbox::GossipVerdict;
using outbox::GossipWay;
using Verb = nostr::RelayMessage::Verb;

constexpr std::size_t kIdsAtOnce = 100;
constexpr std::size_t kCompareBytesMax = 60'000;
constexpr std::size_t kNeedMax = 2'000'000;
// What reaches a node later than it was made.
constexpr std::chrono::hours kMargin(24);
// Ahead of our clock: what events of the future may be.
constexpr std::int64_t kAheadSeconds = 86'400;
// While a node fills a large topic its neighbours are not told of every batch.
constexpr std::chrono::seconds kNewsEvery(2);

std::int64_t unix_seconds(SystemTime time) {
  return seconds_of(time).time_since_epoch().count();
}

// Both halves of a span that holds too much; false: it can't be halved.
bool split(const FillSpan& span, std::int64_t latest, std::vector<FillSpan>& spans) {
  const auto since = std::max<std::int64_t>(span.since.value_or(0), 0);
  const auto until = span.until.value_or(latest);
  if (since >= until) return false;
  const auto middle = since + (until - since) / 2;
  spans.push_back({span.topic, middle + 1, span.until});
  spans.push_back({span.topic, span.since, middle});
  return true;
}

void keep_wanted(std::vector<nostr::EventId>& ids, const ChannelId& channel, const RecentArrivals& unwanted) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(ids, [&](const auto& id) { return unwanted.contains(channel, id); });
}

}  // namespace

Filler::Filler(FillerParts parts)
    : executor_(parts.executor),
      clock_(parts.clock),
      pressure_(parts.pressure),
      neighbours_(parts.neighbours),
      metrics_(parts.metrics),
      look_soon_(std::move(parts.look_soon)),
      server_(parts.clock, parts.rates, parts.metrics.registry),
      asking_(parts.executor),
      fills_(parts.executor, "gossip", [] {}),
      answers_(parts.executor, "gossip", [] {}),
      tells_(parts.executor, "gossip", [] {}) {}

void Filler::attach(std::weak_ptr<outbox::GossipIn> relay, std::weak_ptr<outbox::FillSource> store) {
  relay_ = std::move(relay);
  store_ = std::move(store);
}

void Filler::begin(Endpoint& endpoint) {
  endpoint_ = &endpoint;
  finishing_ = false;
}

Task<void> Filler::finish() {
  finishing_ = true;
  asking_.give_up();
  co_await fills_.join();
  co_await answers_.join();
  co_await tells_.join();
  endpoint_ = nullptr;
}

void Filler::follow_topics(const HashMap<ChannelId, outbox::GossipTopic>& topics) {
  topics_ = topics;
  HashSet<std::string> names;
  for (const auto& [channel, topic] : topics_) names.insert(topic.id);
  server_.take_topics(std::move(names));
}

void Filler::lost(const ChannelId& channel) {
  const std::lock_guard lock(mutex_);
  lost_.insert(channel);
}

void Filler::has_news(const std::vector<std::string>& topics) {
  const std::lock_guard lock(mutex_);
  news_.insert(topics.begin(), topics.end());
}

void Filler::on_question(const NodeId& from, std::uint64_t number, std::string_view bytes) {
  const auto pushed = questions_.push({from, number, std::string(bytes)});
  if (pushed == BoundedQueue<Question>::Pushed::dropped) metrics_.questions_dropped.add();
  if (pushed == BoundedQueue<Question>::Pushed::first) look_soon_();
}

void Filler::on_answer(std::uint64_t number, std::optional<std::string_view> bytes) {
  asking_.answered(number, bytes ? std::optional(std::string(*bytes)) : std::nullopt);
}

void Filler::look() {
  if (endpoint_ == nullptr || finishing_) return;
  const auto now = clock_.steady();
  begin_answers();
  follow_neighbours(now);
  ask_for_lost(now);
  tell_news(now);
  begin_fills(now);
  metrics_.fills.set(static_cast<double>(fills_.running()));
}

void Filler::follow_neighbours(SteadyTime now) {
  const auto version = neighbours_.version();
  if (version == neighbours_version_) return;
  neighbours_version_ = version;
  auto pairs = neighbours_.pairs();
  for (const auto& pair : pairs_) {
    if (!pairs.contains(pair)) schedule_.remove(pair);
  }
  for (const auto& pair : pairs) {
    if (pairs_.contains(pair)) continue;
    schedule_.add(pair, now);
    // To that node this one may be an old neighbour whose restart it did not notice.
    const auto topic = topics_.find(pair.first);
    if (topic != topics_.end() && told_.contains(topic->second.id)) has_news({topic->second.id});
  }
  pairs_ = std::move(pairs);
}

void Filler::ask_for_lost(SteadyTime now) {
  HashSet<ChannelId> lost;
  {
    const std::lock_guard lock(mutex_);
    lost.swap(lost_);
  }
  for (const auto& channel : lost) {
    for (const auto& peer : neighbours_.of(channel)) schedule_.soon({channel, peer}, now);
  }
}

void Filler::tell_news(SteadyTime now) {
  if (now - news_at_ < kNewsEvery) return;
  HashSet<std::string> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
  }
  if (news.empty()) return;
  news_at_ = now;
  std::vector<std::string> later;
  for (const auto& topic : news) {
    told_.insert(topic);
    if (tells_.running() >= kTellsMax) {
      later.push_back(topic);
      continue;
    }
    for (const auto& peer : neighbours_.of(channel_of(topic)))
      tells_.launch("news", tell(peer, news_question(topic)));
  }
  has_news(later);
}

void Filler::begin_fills(SteadyTime now) {
  if (!may_fill()) return;
  while (fills_.running() < kFillsMax) {
    auto job = schedule_.next(now);
    if (!job) return;
    fills_.launch("fill", run(std::move(*job)));
  }
}

void Filler::begin_answers() {
  while (answers_.running() < kAnswersMax) {
    auto asked = questions_.pop(1);
    if (asked.empty()) return;
    answers_.launch("answer", answer(std::move(asked.front())));
  }
}

Task<void> Filler::run(FillSchedule::Job job) {
  const auto began = clock_.now();
  const auto filled = co_await attempt(fill(job));
  if (!filled)
    log::warning("gossip", "a topic was not compared with a neighbour",
                 {{"error", describe(filled.error())}});
  const bool done = filled && *filled;
  (done ? metrics_.fills_done : metrics_.fills_put_off).add();
  schedule_.ended(job.pair, done ? std::optional(began) : std::nullopt, clock_.steady(), settings_.every);
  look_soon_();
}

Task<bool> Filler::fill(const FillSchedule::Job& job) {
  const auto& [channel, peer] = job.pair;
  const Fill fill{relay_.lock(), store_.lock(), channel, peer, std::make_shared<Signal>(executor_)};
  const auto topic = topics_.find(channel);
  if (!fill.relay || !fill.store || topic == topics_.end()) co_return false;
  if (!topic->second.allow_backfill) co_return true;
  const auto now = clock_.now();
  const auto since = job.whole_until ? *job.whole_until - kMargin : now - settings_.window;
  std::vector<FillSpan> spans{{topic->second.id, unix_seconds(since), std::nullopt}};
  while (!spans.empty()) {
    const auto span = std::move(spans.back());
    spans.pop_back();
    const auto step = co_await fill_span(fill, span);
    if (step == Step::stopped) co_return false;
    if (step == Step::too_many && !split(span, unix_seconds(now) + kAheadSeconds, spans)) co_return false;
  }
  co_return true;
}

Task<Filler::Step> Filler::fill_span(const Fill& fill, const FillSpan& span) {
  if (!may_fill()) co_return Step::stopped;
  const auto ours = co_await fill.store->ids(span, FillView::all, FillServer::kSetEventsMax);
  if (!ours) co_return Step::too_many;
  nostr::NegClient client(*ours, {.message_bytes_max = kCompareBytesMax, .need_max = kNeedMax});
  auto question = open_question(span, client.open());
  for (;;) {
    metrics_.fill_rounds.add();
    const auto answer = co_await ask(fill.peer, std::move(question));
    if (!answer) schedule_.unanswered(fill.peer, clock_.steady());
    if (!answer || answer->size() != 1) co_return Step::stopped;
    schedule_.answered(fill.peer);
    const auto& reply = answer->front();
    if (reply.verb == Verb::neg_err && reply.text.starts_with("blocked:")) co_return Step::too_many;
    if (reply.verb != Verb::neg_msg) co_return Step::stopped;
    const auto message = message_of(reply);
    if (!message) co_return Step::stopped;
    const auto next = client.take(*message);
    if (!next) co_return Step::stopped;
    if (!next->has_value()) break;
    question = next_question(**next);
  }
  auto need = client.need();
  keep_wanted(need, fill.channel, unwanted_);
  co_return co_await fetch(fill, span.topic, std::move(need));
}

Task<Filler::Step> Filler::fetch(const Fill& fill, const std::string& topic,
                                 std::vector<nostr::EventId> ids) {
  for (std::size_t first = 0; first < ids.size(); first += kIdsAtOnce) {
    if (!may_fill()) co_return Step::stopped;
    const auto span = std::span(ids).subspan(first, std::min(kIdsAtOnce, ids.size() - first));
    std::vector<nostr::EventId> piece(span.begin(), span.end());
    const auto step = co_await fetch_piece(fill, topic, std::move(piece));
    if (step != Step::done) co_return step;
  }
  co_return Step::done;
}

// A node may cut its answer short; what it does not give at all has gone meanwhile.
Task<Filler::Step> Filler::fetch_piece(const Fill& fill, const std::string& topic,
                                       std::vector<nostr::EventId> ids) {
  for (bool goes_on = true; goes_on && !ids.empty();) {
    const auto answer = co_await ask(fill.peer, events_question(topic, ids));
    if (!answer || answer->empty() || answer->back().verb != Verb::eose) co_return Step::stopped;
    const auto given = answer->size() - 1;
    goes_on = given > 0 && answer->back().json.find("\"more\"") != std::string::npos;
    for (std::size_t i = 0; i < given; ++i) {
      const auto id = co_await take(fill, topic, (*answer)[i].json);
      const auto place = id ? std::find(ids.begin(), ids.end(), *id) : ids.end();
      // It gives what it was not asked for.
      if (place == ids.end()) co_return Step::stopped;
      ids.erase(place);
    }
  }
  co_return Step::done;
}

Task<std::optional<nostr::EventId>> Filler::take(const Fill& fill, const std::string& topic,
                                                 std::string_view json) {
  fill.room->reset();
  const auto verdict =
      fill.relay->take(json, topic, GossipWay::fill, [room = fill.room] { room->set_from_anywhere(); });
  if (verdict.kind == GossipVerdict::Kind::taken) {
    metrics_.filled_new.add();
  } else {
    const bool is_known = verdict.kind == GossipVerdict::Kind::known;
    (is_known ? metrics_.filled_known : metrics_.filled_refused).add();
    if (verdict.id) unwanted_.add(fill.channel, *verdict.id);
  }
  if (verdict.full) co_await fill.room->wait();
  co_return verdict.id;
}

Task<std::optional<std::vector<nostr::RelayMessage>>> Filler::ask(NodeId peer, std::string question) {
  if (finishing_) co_return std::nullopt;
  metrics_.fill_bytes_out.add(question.size());
  const auto answer = co_await asking_.ask(*endpoint_, peer, std::move(question));
  if (!answer) co_return std::nullopt;
  metrics_.fill_bytes_in.add(answer->size());
  co_return read_answer(*answer);
}

// The answer does not matter: a node that did not hear it compares in time anyhow.
Task<void> Filler::tell(NodeId peer, std::string question) {
  co_await asking_.ask(*endpoint_, peer, std::move(question));
}

Task<void> Filler::answer(Question question) {
  const auto given = co_await attempt(answer_to(question));
  if (!given) log::warning("gossip", "a question was not answered", {{"error", describe(given.error())}});
  const auto text = given ? *given : std::nullopt;
  (text ? metrics_.questions_answered : metrics_.questions_refused).add();
  endpoint_->answer(question.number, text ? std::optional<std::string_view>(*text) : std::nullopt);
  if (questions_.size() > 0) look_soon_();
}

Task<std::optional<std::string>> Filler::answer_to(const Question& question) {
  auto read = read_question(question.bytes);
  const auto store = store_.lock();
  if (!read || !store || finishing_) co_return std::nullopt;
  if (const auto* news = std::get_if<NewsQuestion>(&*read)) {
    const auto channel = channel_of(news->topic);
    if (!topics_.contains(channel)) co_return std::nullopt;
    schedule_.soon({channel, question.from}, clock_.steady());
    look_soon_();
    co_return std::string();
  }
  co_return co_await server_.answer(store, question.from, std::move(*read));
}

}  // namespace todoke::gossip
