// A Nostr client for tests, blocking, on a real socket. It says what it got, word for word; every wait ends
// after kClientPatience with an exception that tells what was waited for.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/ws_client.hpp"
#include "nostr/event.hpp"
#include "nostr/signature.hpp"

namespace todoke::test {

inline constexpr std::chrono::seconds kClientPatience(30);

struct OkAnswer {
  std::string id;
  bool accepted = false;
  std::string text;
};

// What came for a REQ until EOSE or CLOSED.
struct StoredAnswer {
  std::vector<std::string> events;  // the events' JSON, in the order of arrival
  std::vector<std::string> ids;
  std::string end;     // the whole EOSE or CLOSED message
  std::string closed;  // the text of CLOSED; empty after EOSE
  [[nodiscard]] bool has_more() const { return end.find("\"more\"") != std::string::npos; }
  // The number in the hint seq:<n>, -1 without one.
  [[nodiscard]] std::int64_t cursor() const;
};

enum class Greeting { challenge, none };

class NostrClient {
 public:
  // Waits for the relay's AUTH challenge, which is the first message unless the relay does not greet.
  explicit NostrClient(const std::string& url, net::WsClientOptions options = {},
                       Greeting greeting = Greeting::challenge);
  ~NostrClient();
  NostrClient(const NostrClient&) = delete;
  NostrClient& operator=(const NostrClient&) = delete;

  void send(const std::string& text);
  void send_binary(const std::string& bytes);
  // The next message that no other call has taken. Throws when the connection ends.
  std::string receive();
  // Nothing: the connection has ended.
  std::optional<std::string> receive_or_end();
  // The next message that starts with `prefix`, such as `["OK"`; others wait for a later call.
  std::string receive(std::string_view prefix);
  // Sends a CLOSE for an unknown subscription and a REQ that is refused, and takes everything up to its
  // CLOSED: what the relay had sent before. For "nothing more comes".
  std::vector<std::string> drain();

  OkAnswer publish(const nostr::Event& event);
  OkAnswer publish_json(const std::string& event_json);
  // `filters` is one or more JSON objects, separated by commas.
  StoredAnswer request(const std::string& sub, const std::string& filters);
  // The same for a subscription that is closed at once.
  StoredAnswer stored(const std::string& filters);
  // The whole COUNT or CLOSED message.
  std::string count(const std::string& sub, const std::string& filters);
  // The JSON of the next event for `sub`.
  std::string live(const std::string& sub);
  // Waits for the challenge of a relay that did not greet: it must be the next message.
  void await_challenge();
  OkAnswer authenticate(const nostr::SecretKey& key);

  void close();
  [[nodiscard]] const std::string& challenge() const { return challenge_; }
  [[nodiscard]] std::uint16_t close_code() const;
  // Whether permessage-deflate was agreed on.
  [[nodiscard]] bool compressed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string url_;
  std::string challenge_;
  std::uint64_t stored_requests_ = 0;
};

OkAnswer parse_ok(const std::string& message);
// The id in an event's JSON.
std::string id_in(const std::string& event_json);

std::int64_t unix_now();
// A signed event, kind 1 with a `t` tag for kukuri:global unless said otherwise.
nostr::Event note(const nostr::SecretKey& key, std::string content,
                  std::vector<std::vector<std::string>> tags = {{"t", "kukuri:global"}}, nostr::Kind kind = 1,
                  std::optional<std::int64_t> created_at = {});

}  // namespace todoke::test
