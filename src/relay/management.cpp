#include "relay/management.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "base/json_writer.hpp"
#include "nostr/event_id.hpp"
#include "nostr/http_auth.hpp"
#include "nostr/signature.hpp"
#include "relay/blocks.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kManagementMax(10);
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

// The admin who has signed the request; refused: why none has. Any path of this relay may stand in `u`:
// clients name the relay, not what they ask of it.
Expected<std::string> signer_of(const net::Request& request, const std::vector<std::string>& admins,
                                const nostr::AuthTarget& target, std::chrono::sys_seconds now) {
  const auto event = nostr::read_http_auth(request.headers.get("Authorization"),
                                           {request.method, request.body, std::nullopt}, target, now);
  if (!event) return refuse("auth-required: " + event.error().message);
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
