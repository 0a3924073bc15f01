// A broker that speaks FIX 4.4: a QuickFIX acceptor in the test's process. It writes down what it got and
// answers as it is told; without being told it fills every order whole. It keeps a book, so it knows what it
// has when it is asked. Its numbers and its messages outlive stop() and start(), as a broker's do.
//
// Plain, and C++14, for the same reason as orders/brokers/fix/engine/session.hpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace todoke {
namespace test {

struct FixGroup;

struct FixMessage {
  std::string type;
  std::map<int, std::string> fields;
  std::vector<FixGroup> groups;
  std::vector<std::pair<int, std::string>> repeated;  // any number of times the same tag, in no group
  bool poss_dup = false;
  bool poss_resend = false;
  int number = 0;

  std::string at(int tag) const {
    const auto found = fields.find(tag);
    return found == fields.end() ? std::string() : found->second;
  }
};

// A repeating group: the tag of its count, the tag that each entry begins with, and the entries, which are
// messages without a type.
struct FixGroup {
  int count = 0;
  int first = 0;
  std::vector<FixMessage> entries;
};

// What is done with a message: the answers, in order, and whether the connection is cut afterwards.
struct FixAnswer {
  std::vector<FixMessage> messages;
  bool cut = false;
};

class Broker {
 public:
  // On a port of 127.0.0.1 that is free.
  Broker();
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  int port() const;
  void start();
  // Logs out and closes the port.
  void stop();
  bool is_logged_on() const;

  // Called for each NewOrderSingle (or OrderStatusRequest), on the broker's thread.
  void answer_orders(std::function<FixAnswer(const FixMessage&)> answer);
  void answer_requests(std::function<FixAnswer(const FixMessage&)> answer);
  // Waits for the connection, then sends. What is sent while it is cut comes when the other side asks.
  void send(const FixMessage& message);
  // Puts the message in the session's store without sending it: a report that was under way when the
  // connection broke.
  void lose(const FixMessage& message);
  void ask_for_resend(int from, int to);

  // What came so far, of a type.
  std::vector<FixMessage> got(const std::string& type) const;
  // NewOrderSingles that the broker executes: of each ClOrdID the first.
  std::vector<std::string> executed() const;
  std::string last_logon_password() const;
  int expected_number() const;  // of the next message in

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reports on `order`, with the groups that brokers send: two parties, one of them with sub-ids, and a contra
// broker. `fill` and `partial` are trades of LastQty at LastPx.
FixMessage acknowledge(const FixMessage& order);
FixMessage pending_new(const FixMessage& order);
FixMessage fill(const FixMessage& order, const std::string& exec_id, const std::string& qty,
                const std::string& px, const std::string& cum_qty, const std::string& avg_px);
FixMessage ended(const FixMessage& order, const std::string& ord_status, const std::string& cum_qty);
FixMessage reject(const FixMessage& order, const std::string& ord_rej_reason);
// The answer to a status request.
FixMessage status(const FixMessage& request, const std::string& ord_status, const std::string& cum_qty,
                  const std::string& avg_px);
FixMessage unknown_order(const FixMessage& request);
FixAnswer whole(const FixMessage& order);

}  // namespace test
}  // namespace todoke
