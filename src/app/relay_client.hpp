// A relay as the commands `query`, `publish`, `sync` and `backfill` talk to it: any one, ours or another's.
// Answers the relay's challenge (NIP-42) where a key was given.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/command.hpp"
#include "base/async.hpp"
#include "net/ws_client.hpp"
#include "nostr/relay_message.hpp"
#include "nostr/signature.hpp"

namespace todoke::app {

struct RelayAddress {
  std::string url;
  std::string name;  // what the relay calls itself: for the `relay` tag of NIP-42
};
// --relay, else that of the node that runs on the data folder. Throws UserError when there is none.
RelayAddress relay_address(const Arguments& arguments);

// The secret key in a file: 64 hex digits. Throws UserError; warns where others may read the file.
nostr::SecretKey read_key_file(const std::string& path);

class RelayClient {
 public:
  // With a key it waits for the relay's challenge and has answered it; a relay that sends none within a few
  // seconds is talked to without. Throws UserError or NetError.
  static Task<std::unique_ptr<RelayClient>> connect(RelayAddress relay, std::optional<nostr::SecretKey> key);

  Task<void> send(std::string message);
  // The next message that is not about logging in; NOTICEs go to stderr, or to the caller that has asked for
  // them. Nothing: the relay has closed the connection. Throws NetError when nothing came within `limit`,
  // UserError when the relay refuses the key.
  Task<std::optional<nostr::RelayMessage>> receive(std::chrono::milliseconds limit);
  // Whether a refusal `auth-required:` is worth a second try: waits a moment for a challenge that is still to
  // come.
  Task<bool> log_in();
  Task<void> close();

  // Why the relay has ended the connection, for people.
  [[nodiscard]] std::string end() const;

 private:
  friend class NoticesKept;
  RelayClient(std::shared_ptr<net::WsClient> client, RelayAddress relay, std::optional<nostr::SecretKey> key)
      : client_(std::move(client)), relay_(std::move(relay)), key_(std::move(key)) {}
  // One message from the socket; nothing: the end.
  Task<bool> read_message(Deadline deadline);
  Task<void> answer(std::string challenge);

  std::shared_ptr<net::WsClient> client_;
  RelayAddress relay_;
  std::optional<nostr::SecretKey> key_;
  std::deque<nostr::RelayMessage> inbox_;
  std::string auth_id_;  // of the answer that is under way
  bool logged_in_ = false;
  bool keeps_notices_ = false;
};

// As long as this lives, receive() gives NOTICEs too.
class NoticesKept {
 public:
  explicit NoticesKept(RelayClient& relay)
      : relay_(relay), before_(std::exchange(relay.keeps_notices_, true)) {}
  ~NoticesKept() { relay_.keeps_notices_ = before_; }
  NoticesKept(const NoticesKept&) = delete;
  NoticesKept& operator=(const NoticesKept&) = delete;

 private:
  RelayClient& relay_;
  const bool before_;
};

}  // namespace todoke::app
