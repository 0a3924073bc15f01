#include "nostr/replies.hpp"

#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "nostr/wire.hpp"

namespace todoke::nostr {
namespace {

std::string two_texts(std::string_view verb, std::string_view text) {
  JsonWriter json;
  json.begin_array().value(verb).value(text).end_array();
  return std::move(json).text();
}

}  // namespace

std::string event_message(const SubId& sub, std::string_view event_json) {
  static constexpr std::string_view kStart = R"(["EVENT",)";
  std::string out;
  out.reserve(kStart.size() + sub.json().size() + event_json.size() + 2);
  out.append(kStart).append(sub.json()).append(",").append(event_json).append("]");
  return out;
}

std::string ok_message(std::string_view event_id, bool accepted, std::string_view text) {
  JsonWriter json;
  json.begin_array().value("OK").value(event_id).value(accepted).value(text).end_array();
  return std::move(json).text();
}

std::string eose_message(const SubId& sub, std::span<const std::string> hints) {
  JsonWriter json;
  json.begin_array().value("EOSE").raw(sub.json());
  if (!hints.empty()) {
    json.begin_array();
    for (const auto& hint : hints) json.value(hint);
    json.end_array();
  }
  json.end_array();
  return std::move(json).text();
}

std::string closed_message(std::string_view sub, std::string_view text) {
  JsonWriter json;
  json.begin_array().value("CLOSED").value(sub).value(text).end_array();
  return std::move(json).text();
}

std::string notice_message(std::string_view text) {
  return two_texts("NOTICE", text);
}

std::string auth_message(std::string_view challenge) {
  return two_texts("AUTH", challenge);
}

std::string count_message(const SubId& sub, std::uint64_t count) {
  JsonWriter json;
  json.begin_array().value("COUNT").raw(sub.json());
  json.begin_object().member("count", count).end_object().end_array();
  return std::move(json).text();
}

std::string neg_err_message(std::string_view sub, std::string_view text) {
  JsonWriter json;
  json.begin_array().value("NEG-ERR").value(sub).value(text).end_array();
  return std::move(json).text();
}

std::string neg_msg_message(const SubId& sub, std::string_view message) {
  static constexpr std::string_view kStart = R"(["NEG-MSG",)";
  std::string out;
  out.reserve(kStart.size() + sub.json().size() + 2 * message.size() + 4);
  out.append(kStart).append(sub.json()).append(",\"");
  append_hex(out, as_bytes(message));
  return out.append("\"]");
}

}  // namespace todoke::nostr
