// A FIX 4.4 session to a broker, as the side that connects. The plain side of QuickFIX: its headers need
// C++14, so none of its types is seen here, and this header is C++14 too.
//
// Prices and quantities are texts and go through unchanged. The session never repeats a message: it answers
// every resend request by a gap fill, so only the sender of an order repeats it.
//
// Sequence numbers live in memory; the owner reads them with numbers() and keeps them where it wants, and
// gives them back with the next Session. Too high a number out is harmless (the other side asks, and gets a
// gap fill), and so is too low a number in (we ask, and reports come again): the owner may keep the one ahead
// and the other behind.
//
// After each Logon it sends a TestRequest; it counts as logged on when the other side has answered that.
//
// Two threads: one of QuickFIX, which calls Events, and one that sends. Nothing but stop() waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace todoke {
namespace fix {

struct SessionSettings {
  std::string host;
  int port = 0;
  std::string sender_comp_id;
  std::string target_comp_id;
  std::string username;  // empty: not sent
  std::string password;
  int heartbeat_sec = 30;
  int reconnect_sec = 1;
  bool reset_on_logon = false;  // both numbers begin with 1 at every logon
  int next_out = 1;
  int next_in = 1;
};

// Fields as they stand in the message; empty: not there.
struct NewOrder {
  std::string cl_ord_id;
  std::string account;
  std::string symbol;
  char side = '1';  // 1 buy, 2 sell
  std::string qty;
  std::string price;         // empty: at the market
  char time_in_force = '3';  // 1 GTC, 3 IOC, 4 FOK
  bool poss_resend = false;
};

struct StatusRequest {
  std::string cl_ord_id;
  std::string account;
  std::string symbol;
  char side = '1';
};

// An ExecutionReport.
struct Report {
  std::string cl_ord_id;  // OrigClOrdID where there is one: this side never replaces or cancels
  std::string order_id;
  std::string exec_id;
  std::string exec_type;
  std::string exec_ref_id;
  std::string ord_status;
  std::string ord_rej_reason;
  std::string last_qty;
  std::string last_px;
  std::string cum_qty;
  std::string avg_px;
  std::string transact_time;  // or else the time at which it was sent
  std::string text;
};

// A Reject or a BusinessMessageReject of an order or a status request.
struct Refused {
  std::string cl_ord_id;
  bool of_order = false;  // or else of a status request
  bool business = false;  // a BusinessMessageReject
  std::string reason;     // SessionRejectReason or BusinessRejectReason
  std::string text;
};

// A message of the other side that this side has refused by a Reject or a BusinessMessageReject.
struct Rejection {
  bool business = false;
  std::string msg_type;      // of the message
  std::string tag;           // of the field that it is about; empty: of none
  std::string reason;        // SessionRejectReason or BusinessRejectReason
  bool was_rescued = false;  // a report that could be read all the same, and was passed on
};

enum class Sent {
  yes,       // handed to the socket
  no,        // not a byte of it has left
  in_doubt,  // a part may have left
};

struct Numbers {
  int next_out = 1;
  int next_in = 1;
  unsigned resets = 0;  // how often both went back to 1
};

// Called on threads of the session, in the order of the messages. None may throw.
struct Events {
  std::function<void(Report)> report;  // may wait: then the session reads nothing more
  std::function<void(Refused)> refused;
  std::function<void(Rejection)> rejected;
  std::function<void(bool)> logged_on;       // and the other side has answered since; or logged out
  std::function<void()> reset;               // both numbers are 1
  std::function<void(std::string)> note;     // an event of the session, without content of messages
  std::function<void(std::string)> trouble;  // why it is not logged on, also in the other side's words
};

class Session {
 public:
  // Messages that wait to be sent. A second's worth of what a session can send.
  static constexpr std::size_t kQueueMax = 4096;

  Session(SessionSettings settings, Events events);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Connects, and again whenever the connection is lost. Throws std::runtime_error for settings that
  // QuickFIX refuses.
  void start();
  // Logs out, waits for the answer at most so long, and ends both threads; blocks. Events may come until it
  // returns. Once.
  void stop(std::chrono::milliseconds patience);

  bool is_logged_on() const;
  Numbers numbers() const;

  // Orders and status requests leave up to this moment only; before the first call none leaves. Any thread.
  void allow_until(std::chrono::steady_clock::time_point end);

  // Sends, unless it is later than `deadline` by then, and calls `done` on the sending thread. False: the
  // queue is full. Messages leave in the order of the calls.
  bool send(const NewOrder& order, std::chrono::steady_clock::time_point deadline,
            std::function<void(Sent)> done);
  bool send(const StatusRequest& request, std::chrono::steady_clock::time_point deadline,
            std::function<void(Sent)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fix
}  // namespace todoke
