#include "broker.hpp"

#include <utility>

#include <fmt/format.h>

namespace todoke::test {
namespace {

constexpr std::size_t kCursedAmong = 60;
constexpr int kCursedPercent = 10;

// The number behind "qty": in the order's JSON.
std::string qty_in(const std::string& body) {
  constexpr std::string_view kName = "\"qty\":";
  const auto begin = body.find(kName) + kName.size();
  return body.substr(begin, body.find_first_of(",}", begin) - begin);
}

std::string fill(const std::string& qty) {
  return fmt::format(
      R"({{"status":"ok","order_ref":"b-1","fills":[{{"px":10.5,"qty":{},"ts":"2025-08-24T00:00:00Z"}}]}})",
      qty);
}

}  // namespace

Broker::Broker(std::uint64_t seed, std::chrono::milliseconds answer_max)
    : answer_max_(answer_max), random_(seed), bad_percent_(pick(random_, 5, 45)) {
  server_.router->add("POST", "/orders", [this](net::Request& request) {
    return serve(request, std::string(request.headers.get("Idempotency-Key")), &Broker::take);
  });
  server_.router->add("GET", "/orders/{key}", [this](net::Request& request) {
    return serve(request, request.parameters.at("key"), &Broker::show);
  });
  server_.start();
}

std::map<std::string, Broker::Entry> Broker::book() {
  const std::lock_guard lock(mutex_);
  return book_;
}

void Broker::clear_up() {
  const std::lock_guard lock(mutex_);
  is_clear_ = true;
  actions_.clear();
  if (held_) held_->set_from_anywhere();
  held_.reset();
}

void Broker::begin_outage() {
  const std::lock_guard lock(mutex_);
  is_out_ = true;
  outage_requests_ = 0;
}

int Broker::end_outage() {
  const std::lock_guard lock(mutex_);
  is_out_ = false;
  return outage_requests_;
}

void Broker::at_next(Moment moment, Action action) {
  const std::lock_guard lock(mutex_);
  actions_[moment] = std::move(action);
}

void Broker::act(Moment moment, const std::string& key) {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    action = std::exchange(actions_[moment], nullptr);
  }
  if (action) action(key);
}

void Broker::hold(std::set<std::string> keys) {
  const std::lock_guard lock(mutex_);
  held_keys_ = std::move(keys);
  held_ = std::make_shared<Signal>(server_.worker());
}

std::set<std::string> Broker::waiting() {
  const std::lock_guard lock(mutex_);
  return {waiting_.begin(), waiting_.end()};
}

void Broker::release() {
  const std::lock_guard lock(mutex_);
  if (held_) held_->set_from_anywhere();
  held_.reset();
}

Task<void> Broker::while_held(std::string key) {
  std::shared_ptr<Signal> held;
  {
    const std::lock_guard lock(mutex_);
    if (held_keys_.empty() || held_keys_.contains(key)) held = held_;
  }
  if (held) co_await held->wait();
}

Broker::Mood Broker::draw_mood() {
  if (is_out_) {
    ++outage_requests_;
    return Mood::down;
  }
  if (is_clear_ || !chance(random_, bad_percent_)) return Mood::good;
  constexpr int kBadMoods = 7;
  return static_cast<Mood>(pick(random_, 1, kBadMoods));
}

void Broker::decide(Entry& entry, Mood mood, const std::string& body) {
  if (!entry.verdict.empty()) return;
  const bool executes =
      mood == Mood::good || mood == Mood::lost ||
      ((mood == Mood::broken || mood == Mood::failing) && !entry.is_cursed && chance(random_, 50));
  if (executes) entry.verdict = "executed";
  if (mood == Mood::refusing) entry.verdict = "refused";
  if (entry.verdict.empty()) return;
  entry.qty = qty_in(body);
  entry.at = std::chrono::system_clock::now();
}

net::Response Broker::answer(const Entry& entry, bool was_decided) {
  if (entry.verdict == "refused") return net::error_response(422, "NO_MARGIN", "no margin");
  if (was_decided && chance(random_, 50)) return net::error_response(409, "DUPLICATE_ORDER", "there is one");
  return net::json_response(200, fill(entry.qty));
}

Task<net::Response> Broker::serve(net::Request& request, std::string key, Answering answering) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(key);
  }
  auto response = co_await (this->*answering)(request, key);
  const std::lock_guard lock(mutex_);
  waiting_.erase(waiting_.find(key));
  co_return response;
}

Task<net::Response> Broker::take(net::Request& request, std::string key) {
  act(Moment::arrived, key);
  Mood mood = Mood::good;
  net::Response response;
  {
    const std::lock_guard lock(mutex_);
    mood = draw_mood();
    auto& entry = book_[key];
    // Early ones, or there would be no time for all their attempts.
    if (++entry.copies == 1)
      entry.is_cursed = book_.size() <= kCursedAmong && chance(random_, kCursedPercent);
    if (entry.is_cursed && mood != Mood::down) mood = Mood::broken;
    const bool is_marked = request.headers.has("Possible-Resend");
    if (is_marked) ++entry.marked;
    if (!is_marked && entry.doubtful) ++entry.unmarked;
    entry.doubtful = entry.doubtful || mood == Mood::lost || mood == Mood::silent || mood == Mood::broken ||
                     mood == Mood::failing || mood == Mood::down;
    const bool was_decided = !entry.verdict.empty();
    decide(entry, mood, request.body);
    if (mood == Mood::good || mood == Mood::lost || mood == Mood::refusing)
      response = answer(entry, was_decided);
  }
  co_await while_held(key);
  act(Moment::answered, key);
  switch (mood) {
    case Mood::lost:
    case Mood::silent:
      co_await sleep_for(answer_max_ + std::chrono::milliseconds(200));
      break;
    case Mood::busy:
      response = net::error_response(429, "BUSY", "later");
      response.headers.set("Retry-After", "1");
      break;
    case Mood::down:
      response = net::error_response(503, "DOWN", "nobody there");
      break;
    case Mood::broken:
      response = net::text_response(200, "<html>");
      break;
    case Mood::failing:
      // A proxy before it says 503, whatever became of the order.
      response = net::error_response(key.size() % 2 == 0 ? 500 : 503, "OOPS", "something broke");
      break;
    case Mood::good:
    case Mood::refusing:
      break;
  }
  co_return response;
}

Task<net::Response> Broker::show(net::Request& /*request*/, std::string key) {
  Mood mood = Mood::good;
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    mood = draw_mood();
    const auto found = book_.find(key);
    if (found != book_.end()) entry = found->second;
    if (entry.verdict.empty() && mood != Mood::down && mood != Mood::failing) {
      ++book_[key].unknown;
    }
  }
  co_await while_held(key);
  if (mood == Mood::silent) co_await sleep_for(answer_max_ + std::chrono::milliseconds(200));
  if (mood == Mood::down || mood == Mood::failing) co_return net::error_response(503, "DOWN", "nobody there");
  if (entry.verdict.empty()) co_return net::error_response(404, "NOT_FOUND", "no such order");
  if (entry.verdict == "refused") co_return net::json_response(200, R"({"status":"error"})");
  co_return net::json_response(200, fill(entry.qty));
}

}  // namespace todoke::test
