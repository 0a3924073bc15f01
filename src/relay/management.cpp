#include "relay/management.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "nostr/event_id.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/signature.hpp"
#include "relay/blocks.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kManagementMax(10);
// Of a signature for HTTP (NIP-98).
constexpr std::chrono::seconds kHttpAuthAgeMax(60);
constexpr nostr::Kind kHttpAuth = 27235;
// NIP-86 knows no pages.
constexpr std::int64_t kBannedShownMax = 10'000;

constexpr int kManaged = 200;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;

enum class ManageAction : std::uint8_t { ban, unban, list };

struct ManageMethod {
  std::string_view name;
  ManageAction action;
  BlockKind kind;
  std::string_view member;  // of an entry of its list
};

constexpr auto kMethods = std::to_array<ManageMethod>({
    {"banpubkey", ManageAction::ban, BlockKind::pubkey, "pubkey"},
    {"unbanpubkey", ManageAction::unban, BlockKind::pubkey, "pubkey"},
    {"listbannedpubkeys", ManageAction::list, BlockKind::pubkey, "pubkey"},
    {"banevent", ManageAction::ban, BlockKind::event, "id"},
    {"allowevent", ManageAction::unban, BlockKind::event, "id"},
    {"listbannedevents", ManageAction::list, BlockKind::event, "id"},
    {"blockip", ManageAction::ban, BlockKind::ip, "ip"},
    {"unblockip", ManageAction::unban, BlockKind::ip, "ip"},
    {"listblockedips", ManageAction::list, BlockKind::ip, "ip"},
});
constexpr std::string_view kSupported = "supportedmethods";

net::Response rpc_response(int status, std::string json) {
  return net::text_response(status, std::move(json), kManagementType);
}

net::Response rpc_error(int status, std::string_view why) {
  JsonWriter json;
  json.begin_object().key("result").null().member("error", why).end_object();
  return rpc_response(status, std::move(json).text());
}

net::Response rpc_result(std::string_view result) {
  return rpc_response(kManaged, fmt::format(R"({{"result":{}}})", result));
}

// With or without padding. Nothing for another character or a length that no bytes have.
std::optional<std::string> base64_decoded(std::string_view text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr unsigned kSextet = 6;
  constexpr unsigned kOctet = 8;
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto at = kAlphabet.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    bits = bits << kSextet | static_cast<std::uint32_t>(at);
    count += kSextet;
    if (count < kOctet) continue;
    count -= kOctet;
    out += static_cast<char>(static_cast<unsigned char>(bits >> count));
  }
  return out;
}

bool has_tag(const nostr::Event& event, std::string_view name, const auto& condition) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return tag.name() == name && condition(tag.value()); });
}

// Who has signed the request; refused: why nobody has who may.
Expected<std::string> signer_of(const net::Request& request, const std::vector<std::string>& admins,
                                const nostr::AuthTarget& target, std::chrono::sys_seconds now) {
  std::string_view header = request.headers.get("Authorization");
  const auto scheme = cut_until(header, ' ');
  if (!same_ignoring_case(scheme, "Nostr")) return refuse("auth-required: sign the request as NIP-98 says");
  const auto text = base64_decoded(trimmed(header));
  if (!text) return refuse("auth-required: the Authorization header is no base64");
  const auto event = nostr::parse_event(*text, nostr::EventLimits{});
  if (!event) return refuse(fmt::format("auth-required: {}", text_of(event.error().reason)));
  if (event->kind() != kHttpAuth) return refuse(fmt::format("auth-required: kind must be {}", kHttpAuth));
  const auto oldest = (now - kHttpAuthAgeMax).time_since_epoch().count();
  const auto newest = (now + kHttpAuthAgeMax).time_since_epoch().count();
  if (event->created_at() < oldest || event->created_at() > newest)
    return refuse("auth-required: created_at out of range");
  if (!has_tag(*event, "u", [&](std::string_view value) { return nostr::names_relay(value, target); }))
    return refuse("auth-required: u names another relay");
  if (!has_tag(*event, "method", [](std::string_view value) { return same_ignoring_case(value, "POST"); }))
    return refuse("auth-required: method must be POST");
  const auto payload = to_hex(sha256({request.body}));
  if (!has_tag(*event, "payload", [&](std::string_view value) { return same_ignoring_case(value, payload); }))
    return refuse("auth-required: payload is not the hash of the body");
  auto signer = event->pubkey().hex();
  if (std::find(admins.begin(), admins.end(), signer) == admins.end())
    return refuse("restricted: not one of relay.admins");
  if (!nostr::has_right_id(*event) || !nostr::has_right_signature(*event))
    return refuse("auth-required: bad signature");
  return signer;
}

std::string supported_methods() {
  JsonWriter json;
  json.begin_array().value(kSupported);
  for (const auto& method : kMethods) json.value(method.name);
  json.end_array();
  return std::move(json).text();
}

// The text at that place of the parameters; nothing where there is none.
std::optional<std::string> text_at(const JsonValue& call, std::size_t index) {
  const auto* params = call.member("params");
  if (params == nullptr || !params->is(JsonValue::Kind::array) || params->values.size() <= index)
    return std::nullopt;
  const auto& value = params->values[index];
  if (!value.is(JsonValue::Kind::string)) return std::nullopt;
  return value.text;
}

Task<std::string> listed(pg::Connection& connection, ManageMethod method) {
  const auto rows = co_await list_blocks(connection, method.kind, nullptr, kBannedShownMax,
                                         Deadline::after(kManagementMax));
  JsonWriter json;
  json.begin_array();
  for (const auto& row : rows) {
    if (row.is_over) continue;
    json.begin_object()
        .member(method.member, row.value)
        .member("reason", row.reason.value_or(""))
        .end_object();
  }
  json.end_array();
  co_return std::move(json).text();
}

Task<net::Response> carry_out(pg::Connection& connection, ManageMethod method, std::string value,
                              std::optional<std::string> reason, std::string actor) {
  const auto deadline = Deadline::after(kManagementMax);
  if (method.action == ManageAction::unban) {
    const bool was_there = co_await remove_block(connection, method.kind, value, actor, deadline);
    co_return was_there ? rpc_result("true") : rpc_error(kManaged, fmt::format("{} is not blocked", value));
  }
  BlockOrder order;
  order.kind = method.kind;
  order.value = std::move(value);
  order.reason = std::move(reason);
  order.actor = std::move(actor);
  const auto done = co_await add_block(connection, std::move(order), deadline);
  co_return done.is_full ? rpc_error(kManaged, "there are too many blocks: remove one first")
                         : rpc_result("true");
}

}  // namespace

Task<net::Response> manage(const net::Request& request, std::vector<std::string> admins,
                           nostr::AuthTarget target, pg::Pool& pool, const Clock& clock) {
  if (admins.empty()) co_return rpc_error(kForbidden, "restricted: relay.admins names nobody");
  const auto signer = signer_of(request, admins, target, seconds_of(clock.now()));
  if (!signer) co_return rpc_error(kUnauthorized, signer.error().message);
  const auto call = read_json(request.body);
  if (!call) co_return rpc_error(kManaged, call.error().text());
  const auto* name = call->member("method");
  if (name == nullptr || !name->is(JsonValue::Kind::string))
    co_return rpc_error(kManaged, "method is required");
  if (name->text == kSupported) co_return rpc_result(supported_methods());
  const auto* method = std::find_if(kMethods.begin(), kMethods.end(),
                                    [&](const auto& known) { return known.name == name->text; });
  if (method == kMethods.end())
    co_return rpc_error(kManaged, "unknown method: supportedmethods names those that there are");
  if (method->action == ManageAction::list) {
    const auto lease = co_await pool.acquire(Deadline::after(kManagementMax));
    const auto list = co_await listed(*lease, *method);
    co_return rpc_result(list);
  }
  const auto text = text_at(*call, 0);
  if (!text) co_return rpc_error(kManaged, fmt::format("params[0] must be the {}", method->member));
  auto value = block_value(method->kind, *text);
  if (!value) co_return rpc_error(kManaged, value.error().message);
  auto reason = text_at(*call, 1);
  if (reason && reason->size() > kBlockReasonMax)
    co_return rpc_error(kManaged, "params[1], the reason, is too long");
  const auto lease = co_await pool.acquire(Deadline::after(kManagementMax));
  auto response =
      co_await carry_out(*lease, *method, std::move(*value), std::move(reason), "nip86:" + *signer);
  co_return response;
}

}  // namespace todoke::relay
