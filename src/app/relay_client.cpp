#include "app/relay_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "app/instance_file.hpp"
#include "base/fd.hpp"
#include "base/json_writer.hpp"
#include "net/config.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

using nostr::RelayMessage;

constexpr std::chrono::seconds kConnectLimit(10);
constexpr std::chrono::seconds kSendLimit(30);
constexpr std::chrono::seconds kCloseLimit(2);
// For the challenge of a relay, which most send at once and some never.
constexpr std::chrono::seconds kChallengeLimit(3);
// Relays send events of a few hundred kilobytes at most; ours 64 KiB.
constexpr std::size_t kRelayMessageBytesMax = 8 * 1024 * 1024;
// A key and the end of its line, with room for more blanks.
constexpr std::size_t kKeyFileBytesMax = 256;

// The address that a node listens on, as a client beside it names it.
std::string reachable(std::string address) {
  if (address.starts_with("0.0.0.0:")) address.replace(0, 7, "127.0.0.1");
  if (address.starts_with("[::]:")) address.replace(0, 4, "[::1]");
  return address;
}

bool runs_role(const Instance& node, std::string_view role) {
  const auto roles = node.notes.find("roles");
  return roles != node.notes.end() && roles->second.find(role) != std::string::npos;
}

}  // namespace

RelayAddress relay_address(const Arguments& arguments) {
  if (const auto url = arguments.option("relay")) return {*url, *url};
  const auto own = load_config(arguments);
  const auto nodes = running_instances(data_folder(own));
  const auto node =
      std::find_if(nodes.begin(), nodes.end(), [](const Instance& n) { return runs_role(n, "relay"); });
  if (node == nodes.end()) {
    throw UserError(
        fmt::format("no relay runs on {}; name one with --relay wss://…", data_folder(own).string()));
  }
  const auto config = config_of_next_start(*node, own);
  const auto& public_url = config.get(relay::keys::kPublicUrl);
  const bool secure = !config.get(net::keys::kTlsCert).empty();
  // Its certificate is for its name.
  if (secure && !public_url.empty()) return {public_url, public_url};
  const auto url = fmt::format("{}://{}/relay", secure ? "wss" : "ws", reachable(node->notes.at("public")));
  return {url, public_url.empty() ? url : public_url};
}

nostr::SecretKey read_key_file(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int error = errno;
  std::array<char, kKeyFileBytesMax> bytes{};
  const auto got = fd ? ::read(fd.get(), bytes.data(), bytes.size()) : -1;
  if (fd) error = errno;
  if (got < 0)
    throw UserError(fmt::format("{} can't be read: {}", path, std::generic_category().message(error)));
  struct stat info{};
  if (fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    note(fmt::format("todoke: others may read the key in {}: chmod 600", path));
  }
  std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto begin = text.find_first_not_of(kBlanks);
  text = begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  const auto key = nostr::SecretKey::from_hex(text);
  // Wiped in any case: the file may hold a key in another form.
  bytes.fill('\0');
  if (!key) throw UserError(fmt::format("{} holds no secret key: it is 64 hex digits in lower case", path));
  return *key;
}

Task<std::unique_ptr<RelayClient>> RelayClient::connect(RelayAddress relay,
                                                        std::optional<nostr::SecretKey> key) {
  net::WsClientOptions options;
  options.ws.message_bytes_max = kRelayMessageBytesMax;
  auto socket =
      co_await net::WsClient::connect(relay.url, std::move(options), Deadline::after(kConnectLimit));
  std::unique_ptr<RelayClient> client(new RelayClient(std::move(socket), std::move(relay), std::move(key)));
  if (client->key_) {
    const bool logged_in = co_await client->log_in();
    if (!logged_in) note("todoke: the relay asks for no key; going on without");
  }
  co_return client;
}

Task<void> RelayClient::send(std::string message) {
  co_await client_->send_text(std::move(message), Deadline::after(kSendLimit));
}

Task<std::optional<RelayMessage>> RelayClient::receive(std::chrono::milliseconds limit) {
  const auto deadline = Deadline::after(limit);
  while (inbox_.empty()) {
    const bool goes_on = co_await read_message(deadline);
    if (!goes_on) co_return std::nullopt;
  }
  auto message = std::move(inbox_.front());
  inbox_.pop_front();
  co_return message;
}

Task<bool> RelayClient::log_in() {
  if (!key_) co_return false;
  const auto deadline = Deadline::after(kChallengeLimit);
  while (!logged_in_) {
    bool goes_on = false;
    try {
      goes_on = co_await read_message(deadline);
    } catch (const net::NetError&) {
      // The time is up.
    }
    if (!goes_on) co_return logged_in_;
  }
  co_return true;
}

Task<bool> RelayClient::read_message(Deadline deadline) {
  auto received = co_await client_->receive(deadline);
  if (!received) co_return false;
  auto message = nostr::parse_relay_message(received->payload);
  if (!message) {
    note("todoke: the relay sent what is no message of Nostr");
  } else if (message->verb == RelayMessage::Verb::auth) {
    if (key_) co_await answer(message->text);
  } else if (message->verb == RelayMessage::Verb::ok && !auth_id_.empty() && message->subject == auth_id_) {
    if (!message->accepted) throw UserError(fmt::format("the relay refuses the key: {}", message->text));
    logged_in_ = true;
  } else if (message->verb == RelayMessage::Verb::notice && !keeps_notices_) {
    note("todoke: the relay says: " + message->text);
  } else if (message->verb != RelayMessage::Verb::other) {
    inbox_.push_back(std::move(*message));
  }
  co_return true;
}

Task<void> RelayClient::answer(std::string challenge) {
  nostr::EventDraft draft;
  draft.created_at = seconds_of(std::chrono::system_clock::now()).time_since_epoch().count();
  draft.kind = nostr::kAuth;
  draft.tags = {{"relay", relay_.name}, {"challenge", std::move(challenge)}};
  const auto event = nostr::sign_event(draft, *key_);
  auth_id_ = event.id().hex();
  co_await send(fmt::format(R"(["AUTH",{}])", event.json()));
}

Task<void> RelayClient::close() {
  co_await client_->close(1000, "", Deadline::after(kCloseLimit));
}

std::string RelayClient::end() const {
  return client_->close_reason().empty()
             ? fmt::format("code {}", client_->close_code())
             : fmt::format("{}, code {}", client_->close_reason(), client_->close_code());
}

}  // namespace todoke::app
