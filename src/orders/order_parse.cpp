#include "orders/order_parse.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include <fmt/format.h>

#include "orders/text.hpp"

namespace todoke::orders {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kInstrumentMin = 3;
constexpr std::size_t kInstrumentMax = 20;

constexpr std::array<std::string_view, 11> kMembers{
    "instrument",      "side",     "qty",          "price", "time_in_force",
    "idempotency_key", "order_id", "requested_at", "tags",  "risk_constraints",
    "trace_id",
};
constexpr std::array<std::string_view, 3> kRiskMembers{"max_dd", "max_consecutive_loss", "max_spread"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_instrument(std::string_view text) {
  return text.size() >= kInstrumentMin && text.size() <= kInstrumentMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

// Takes fields out of an object and keeps the first offence; what is read after one is of no matter.
class Fields {
 public:
  Fields(const JsonValue& object, std::string_view path) : object_(object), path_(path) {}

  void refuse_unknown(std::span<const std::string_view> known) {
    for (const auto& name : object_.names) {
      if (std::find(known.begin(), known.end(), name) == known.end()) offend(name, "is unknown");
    }
  }

  std::optional<std::string> text(std::string_view name, std::size_t characters_max) {
    const auto* value = of_kind(name, Kind::string, "must be a string");
    if (value == nullptr) return std::nullopt;
    auto normal = to_nfc(value->text);
    if (characters(normal) > characters_max) {
      offend(name, fmt::format("has more than {} characters", characters_max));
    }
    return normal;
  }

  std::optional<Decimal> number(std::string_view name) {
    const auto* value = of_kind(name, Kind::number, "must be a number");
    if (value == nullptr) return std::nullopt;
    auto parsed = Decimal::parse(value->text);
    if (parsed) return std::move(*parsed);
    offend(name, parsed.error().message);
    return std::nullopt;
  }

  const JsonValue* of_kind(std::string_view name, Kind kind, std::string_view otherwise) {
    const auto* value = object_.member(name);
    if (value == nullptr || value->is(kind)) return value;
    offend(name, otherwise);
    return nullptr;
  }

  void require(std::string_view name) {
    if (object_.member(name) == nullptr) offend(name, "is required");
  }

  void offend(std::string_view name, std::string_view message) {
    if (!offence_) offence_ = BadField{path_of(path_, name), std::string(message)};
  }
  void offend(BadField offence) {
    if (!offence_) offence_ = std::move(offence);
  }

  std::optional<BadField>& offence() { return offence_; }

 private:
  const JsonValue& object_;
  std::string path_;
  std::optional<BadField> offence_;
};

void read_instrument(Fields& fields, Order& order) {
  fields.require("instrument");
  auto text = fields.text("instrument", kIdCharactersMax);
  if (!text) return;
  if (!is_instrument(*text)) {
    fields.offend("instrument", "must be 3 to 20 characters of A-Z, 0-9, dot, underscore and hyphen");
  }
  order.instrument = std::move(*text);
}

void read_side(Fields& fields, Order& order) {
  fields.require("side");
  const auto text = fields.text("side", kIdCharactersMax);
  if (!text) return;
  if (*text != "BUY" && *text != "SELL") fields.offend("side", "must be BUY or SELL");
  order.side = *text == "SELL" ? Side::sell : Side::buy;
}

void read_amounts(Fields& fields, Order& order) {
  fields.require("qty");
  if (auto qty = fields.number("qty")) {
    if (!qty->is_positive()) fields.offend("qty", "must be more than 0");
    order.qty = std::move(*qty);
  }
  order.price = fields.number("price");
  if (order.price && !order.price->is_positive()) fields.offend("price", "must be null or more than 0");
}

void read_time_in_force(Fields& fields, Order& order) {
  const auto text = fields.text("time_in_force", kIdCharactersMax);
  if (!text || *text == "IOC") return;
  if (*text != "FOK" && *text != "GTC") fields.offend("time_in_force", "must be IOC, FOK or GTC");
  order.time_in_force = *text == "FOK" ? TimeInForce::fok : TimeInForce::gtc;
}

void read_key(Fields& fields, Order& order) {
  fields.require("idempotency_key");
  const auto* value = fields.of_kind("idempotency_key", Kind::string, "must be a string");
  if (value == nullptr) return;
  if (!is_idempotency_key(value->text)) {
    fields.offend("idempotency_key", "must be 8 to 64 printable ASCII characters without space");
  }
  order.idempotency_key = value->text;
}

void read_tags(Fields& fields, Order& order) {
  const auto* tags = fields.of_kind("tags", Kind::array, "must be an array");
  if (tags == nullptr) return;
  if (tags->values.size() > kTagsMax) return fields.offend("tags", "has more than 8 entries");
  auto& read = order.tags.emplace();
  for (std::size_t i = 0; i < tags->values.size(); ++i) {
    const auto& tag = tags->values[i];
    const auto offend = [&](std::string message) {
      fields.offend(BadField{path_of("tags", i), std::move(message)});
    };
    if (!tag.is(Kind::string)) return offend("must be a string");
    auto normal = to_nfc(tag.text);
    if (characters(normal) > kTagCharactersMax) return offend("has more than 32 characters");
    read.push_back(std::move(normal));
  }
}

void read_risk(Fields& fields, Order& order) {
  const auto* object = fields.of_kind("risk_constraints", Kind::object, "must be an object");
  if (object == nullptr) return;
  Fields inner(*object, "risk_constraints");
  inner.refuse_unknown(kRiskMembers);
  const auto limit = [&inner](std::string_view name) {
    auto number = inner.number(name);
    if (number && number->is_negative()) inner.offend(name, "must be 0 or more");
    return number;
  };
  auto& risk = order.risk_constraints.emplace();
  risk.max_dd = limit("max_dd");
  risk.max_consecutive_loss = limit("max_consecutive_loss");
  risk.max_spread = limit("max_spread");
  if (inner.offence()) fields.offend(std::move(*inner.offence()));
}

void read_requested_at(Fields& fields, Order& order) {
  order.requested_at = fields.text("requested_at", kIdCharactersMax);
  if (order.requested_at && !is_timestamp(*order.requested_at)) {
    fields.offend("requested_at", "must be a date and time with its offset, such as 2025-08-24T12:34:56Z");
  }
}

// Takes digits from the front of a timestamp.
class Clockwork {
 public:
  explicit Clockwork(std::string_view text) : rest_(text) {}

  std::optional<unsigned> digits(std::size_t count) {
    if (rest_.size() < count ||
        !std::all_of(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count), is_digit)) {
      return std::nullopt;
    }
    unsigned value = 0;
    for (const char c : rest_.substr(0, count)) value = value * 10 + static_cast<unsigned>(c - '0');
    rest_.remove_prefix(count);
    return value;
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool fraction() {
    std::size_t count = 0;
    while (digits(1)) ++count;
    return count > 0;
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool takes_offset(Clockwork& text) {
  if (text.take('Z')) return true;
  if (!text.take('+') && !text.take('-')) return false;
  const auto hours = text.digits(2);
  const bool colon = text.take(':');
  const auto minutes = text.digits(2);
  return hours && colon && minutes && *hours < 24 && *minutes < 60;
}

}  // namespace

bool is_idempotency_key(std::string_view key) {
  return key.size() >= kKeyCharactersMin && key.size() <= kKeyCharactersMax &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
}

bool is_timestamp(std::string_view timestamp) {
  Clockwork text(timestamp);
  const auto year = text.digits(4);
  if (!year || !text.take('-')) return false;
  const auto month = text.digits(2);
  if (!month || !text.take('-')) return false;
  const auto day = text.digits(2);
  if (!day || !text.take('T')) return false;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day));
  const auto hour = text.digits(2);
  if (!hour || !text.take(':')) return false;
  const auto minute = text.digits(2);
  if (!minute || !text.take(':')) return false;
  const auto second = text.digits(2);
  if (!second || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return false;
  if (text.take('.') && !text.fraction()) return false;
  return takes_offset(text) && text.at_end();
}

Checked<Order> parse_order(std::string_view json) {
  const auto document = read_json(json);
  if (!document) return tl::unexpected<BadField>(document.error());
  if (!document->is(Kind::object)) return bad_field(kWholeDocument, "must be a JSON object");
  Fields fields(*document, "");
  fields.refuse_unknown(kMembers);
  Order order;
  read_instrument(fields, order);
  read_side(fields, order);
  read_amounts(fields, order);
  read_time_in_force(fields, order);
  read_key(fields, order);
  order.order_id = fields.text("order_id", kIdCharactersMax);
  read_requested_at(fields, order);
  read_tags(fields, order);
  read_risk(fields, order);
  order.trace_id = fields.text("trace_id", kIdCharactersMax);
  if (fields.offence()) return tl::unexpected<BadField>(std::move(*fields.offence()));
  return order;
}

}  // namespace todoke::orders
