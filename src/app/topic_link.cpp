#include "app/topic_link.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "relay/topic_link.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kPieceMax(30);

std::int64_t state_number(const JsonValue& state, std::string_view name, std::int64_t otherwise) {
  const auto* value = state.member(name);
  if (value == nullptr || !value->is(JsonValue::Kind::number)) return otherwise;
  return parse_number<std::int64_t>(value->text).value_or(otherwise);
}

relay::LinkPlace link_place(const std::string& text) {
  relay::LinkPlace place;
  const auto state = read_json(text);
  if (!state) return place;
  place.created_at = state_number(*state, "created_at", place.created_at);
  place.linked = state_number(*state, "linked", 0);
  const auto* id = state->member("event_id");
  if (id != nullptr && id->is(JsonValue::Kind::string)) place.event_id = id->text;
  return place;
}

std::string state_of(const relay::LinkPlace& place) {
  JsonWriter json;
  json.begin_object()
      .member("created_at", place.created_at)
      .member("event_id", place.event_id)
      .member("linked", place.linked)
      .end_object();
  return std::move(json).text();
}

Task<relay::LinkPlace> link_piece(pg::Pool& pool, std::string topic, relay::LinkPlace place) {
  const auto deadline = Deadline::after(kPieceMax);
  const auto lease = co_await pool.acquire(deadline);
  co_return co_await relay::link_some(*lease, std::move(topic), std::move(place), deadline);
}

Task<Expected<std::string>> link_topic(pg::Pool& pool, jobs::Run& run) {
  auto place = link_place(run.state());
  while (!place.is_end) {
    place = co_await link_piece(pool, run.subject(), std::move(place));
    const bool goes_on = co_await run.keep(place.linked, std::nullopt, state_of(place));
    if (!goes_on) co_return std::string("{}");
  }
  const auto deadline = Deadline::after(kPieceMax);
  const auto lease = co_await pool.acquire(deadline);
  co_await relay::mark_ingested(*lease, run.subject(), deadline);
  co_return fmt::format(R"({{"linked":{}}})", place.linked);
}

}  // namespace

jobs::Kind topic_link_job(pg::Pool& pool) {
  return {"topic.link", [&pool](jobs::Run& run) { return link_topic(pool, run); }};
}

}  // namespace todoke::app
