// One client on the WebSocket: reads its messages, answers them, and passes on what the hub has for it. Every
// EVENT gets one OK, every REQ or COUNT that is refused a CLOSED, every NEG-OPEN or NEG-MSG a NEG-ERR.
//
// Lives on the connection's executor. Bounded by the connection's own queues; while the writer's queue is
// full nothing more is read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/websocket.hpp"
#include "nostr/auth.hpp"
#include "nostr/wire.hpp"
#include "relay/admission.hpp"
#include "relay/client_output.hpp"
#include "relay/hub.hpp"
#include "relay/policy_protocol.hpp"
#include "relay/services.hpp"

namespace todoke::relay {

class Session final : public net::WsHandler, public Subscriber, public std::enable_shared_from_this<Session> {
 public:
  // `address` is the client's; `host` what it connected to.
  Session(SessionServices& services, std::string address, std::string_view host);

  void on_open(const std::shared_ptr<net::WsConnection>& connection) override;
  void on_message(net::WsOpcode opcode, std::string_view payload) override;
  void on_close(std::uint16_t code, std::string_view reason) override;
  void on_written(std::size_t bytes) override;
  void on_ping() override { pay_for_control(); }
  void on_pong(std::string_view) override { pay_for_control(); }
  bool on_drain() override;

  [[nodiscard]] const std::string& network() const override { return network_; }
  void deliver(std::vector<net::FramePtr> frames) override;
  void deliver_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose) override;
  void deliver_count(nostr::SubId sub, std::uint64_t found) override;
  void all_answered() override;

  // Sends the challenge if the connection must authenticate sooner or later, and closes it if it should have
  // done so by now. From anywhere.
  void check_auth();
  // Closes a connection that has asked for nothing since it was opened, this long ago or longer. From
  // anywhere.
  void check_use(std::chrono::milliseconds patience);
  // Ends the connection if its address is blocked. From anywhere.
  void check_address();
  // Ends the connection of a disabled account, and what is open that its keys may not use any more. From
  // anywhere.
  void check_rights();

 private:
  // `bytes` is the size of the message's text, for which its sender pays (cost.hpp).
  void handle(nostr::EventMessage message, std::size_t bytes);
  void handle(nostr::ReqMessage message, std::size_t bytes);
  void handle(nostr::CountMessage message, std::size_t bytes);
  void handle(const nostr::CloseMessage& message, std::size_t bytes);
  void handle(const nostr::AuthMessage& message, std::size_t bytes);
  void handle(nostr::NegOpenMessage message, std::size_t bytes);
  void handle(nostr::NegMsgMessage message, std::size_t bytes);
  void handle(const nostr::NegCloseMessage& message, std::size_t bytes);
  void refuse_message(nostr::MessageRefusal refusal, std::size_t bytes);

  void send(std::string_view text);
  // Sends the challenge, unless that was done before: a connection has one.
  void challenge();
  // Before an answer that says `auth-required:`.
  void challenge_for(nostr::Reason reason);
  void challenge_for(const std::vector<nostr::Filter>& filters);
  void answer(const nostr::EventId& id, bool accepted, std::string_view text);
  void refuse(const nostr::EventId& id, nostr::Reason reason);
  void answer_event(const nostr::EventId& id, Outcome outcome);
  // Asks the operator's program first, where there is one.
  void ask_policy(Admitted admitted);
  void follow_policy(Admitted admitted, const PolicyVerdict& verdict);
  void take(Admitted admitted);
  void store(Incoming incoming);
  // One more in a row; too many end the connection, with this reason.
  void bad_message(std::string_view reason);
  void end_subscription(const std::string& sub, nostr::Reason reason);
  void end_reconciliation(const std::string& sub, nostr::Reason reason);
  void compare_later(nostr::NegMsgMessage message, std::size_t bytes);
  void end(std::string_view why);
  void close_when_answered();

  [[nodiscard]] std::optional<nostr::Reason> refusal_of(const std::vector<nostr::Filter>& filters,
                                                        std::size_t bytes);
  [[nodiscard]] std::optional<nostr::Reason> wrong_topics(const std::vector<nostr::Filter>& filters) const;
  // Whether auth.mode = required holds for this connection by now.
  [[nodiscard]] bool is_enforced() const;
  [[nodiscard]] bool must_authenticate() const { return authenticated_.empty() && is_enforced(); }
  // What the proven keys may do has to be read before anything else is looked at.
  [[nodiscard]] bool lacks_rights() const;
  // Reads it, and nothing else meanwhile, and goes on with `then`.
  void read_rights(std::function<void(Session&)> then);
  void recheck_rights();
  // Of whoever sends an event of this author; without one, of all proven keys.
  [[nodiscard]] std::optional<Allowance> allowance(const nostr::Pubkey* author = nullptr) const;
  // Leaves the topics that may be used; the reason where none is left.
  [[nodiscard]] std::optional<nostr::Reason> restrict_topics(Incoming& incoming) const;
  [[nodiscard]] std::optional<nostr::Reason> refusal_by_rights(const nostr::Event& event) const;
  [[nodiscard]] std::optional<nostr::Reason> refusal_by_rights(
      const std::vector<nostr::Filter>& filters) const;
  // Counts the search, and opens it when the plan allows one more.
  void open_search(nostr::ReqMessage message);
  Task<void> spend_and_open(nostr::Pubkey payer, nostr::ReqMessage message);
  void open(nostr::ReqMessage message);
  // `author` pays if this connection has proven that key, else the key that was proven first.
  [[nodiscard]] bool pays(net::RateLimiter& rate, std::string_view what, double cost,
                          const nostr::Pubkey* author = nullptr);
  // The same for what waits where it is not paid, so that its sender is not refused.
  [[nodiscard]] bool takes(net::RateLimiter& rate, double cost, const nostr::Pubkey* author) const;
  [[nodiscard]] bool pays_for_event(std::size_t bytes, std::size_t rows, const nostr::Pubkey* author);
  // For an answer that was given.
  void charge(double cost);
  template <class Use>
  auto with_payers(const nostr::Pubkey* author, const Use& use) const;
  void read_slower();
  void pay_for_control();
  [[nodiscard]] std::function<void()> resume_later();
  // Nothing more is read before the hub has taken what was asked.
  void wait_for_hub();
  [[nodiscard]] bool nobody_waits() const;
  [[nodiscard]] SubscriberPtr self() { return shared_from_this(); }

  SessionServices& services_;
  const std::string address_;
  const std::string network_;        // of the address: who it is for every limit
  const std::string neighbourhood_;  // likewise where there are too many
  nostr::AuthTarget target_;
  const std::string challenge_;
  const SystemTime opened_at_;
  const SteadyTime opened_steady_;
  std::atomic<bool> has_asked_ = false;
  std::shared_ptr<net::WsConnection> connection_;  // null before on_open and after on_close
  Executor executor_;
  bool challenged_ = false;
  std::vector<nostr::Pubkey> authenticated_;
  KeyList rights_;                           // of these keys
  bool rights_failed_ = false;               // they could not be read for the message that is next
  std::optional<SystemTime> rechecked_for_;  // the in_force_at since which they are enforced
  std::uint64_t searches_ = 0;               // that were counted
  std::size_t events_under_way_ = 0;         // given to the policy or the writer
  bool reads_answered_ = false;              // while the process stops: no REQ or COUNT waits for its answer
  std::size_t bad_messages_ = 0;             // in a row
  std::size_t refused_ = 0;                  // for the rate, CLOSEs apart; less by one for each that was paid
  std::shared_ptr<ClientOutput> output_;     // made by on_open
};

}  // namespace todoke::relay
