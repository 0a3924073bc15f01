// A way to a broker. An adapter sends an order once for each call and never tries again by itself; the worker
// decides whether to try again, and when. All calls come on one executor, several at a time.
//
// The key of the order is the same for every try, so that a broker that knows it does nothing twice. An
// adapter that can look an order up by its key offers find(); the worker then asks before it sends an order
// in doubt.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "base/trace.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

struct SendRequest {
  const Order* order = nullptr;  // lives until the call has ended
  std::string idempotency_key;
  std::int64_t outbox_id = 0;    // tells apart orders that had the same key one after the other
  std::string broker_id;         // BrokerAdapter::broker_id of the key
  std::int64_t claim_no = 0;     // grows with every try of the order, whoever makes it
  bool possible_resend = false;  // an earlier try may have reached the broker
  TraceContext trace;            // of the span broker.send
  // The kill switch. The adapter asks right before the order leaves: after it has made a connection, and
  // after anything else that takes time.
  std::function<bool()> may_go = [] { return true; };
};

// How a try ended.
struct SendOutcome {
  // status, fills, avg_price, executed_qty, cost, slippage, broker, reason_code and warnings are the
  // adapter's; the worker fills in the rest. An error has one of the contract's reason codes.
  ExecResult result;
  std::string message;  // for operators, without content; kept as last_error_msg
  std::string unread;   // ok: names of the members that could not be read
  // The broker may have the order although it gave no answer: a timeout, or a connection lost after the first
  // byte.
  bool in_doubt = false;
  // The broker says that it has an order of this id already.
  bool duplicate = false;
  // The adapter sent nothing, and nothing is wrong with the order: may_go said no, or the way to the broker
  // has just closed (can_send_now). The worker gives it back as if it had never claimed it.
  bool held_back = false;
  std::optional<std::chrono::milliseconds> retry_after;  // the broker asked for this pause
};

// A try that failed. The broker's name is filled in by the worker.
SendOutcome failure(std::string_view code, std::string message, bool in_doubt);
SendOutcome held_back();

enum class FindAnswer { found, not_found, unknown };

struct FindOutcome {
  // unknown: the broker gave no answer (timeout, down), so the order may be there or not.
  FindAnswer answer = FindAnswer::unknown;
  ExecResult result;        // found: the broker's answer, as in SendOutcome
  std::string message;      // unknown: why
  std::string unread = {};  // found: as in SendOutcome
  bool was_asked = true;  // unknown: false when the question could not leave, as with SendOutcome::held_back
};

FindOutcome unknown(std::string why);
FindOutcome not_asked(std::string why);

class BrokerAdapter {
 public:
  virtual ~BrokerAdapter() = default;
  BrokerAdapter() = default;
  BrokerAdapter(const BrokerAdapter&) = delete;
  BrokerAdapter& operator=(const BrokerAdapter&) = delete;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // The id under which the broker gets an order of this key: a function of the key alone.
  [[nodiscard]] virtual std::string broker_id(const std::string& idempotency_key) const {
    return idempotency_key;
  }
  // Whether risk_constraints of an order are enforced by the broker.
  [[nodiscard]] virtual bool enforces_risk() const { return false; }

  // False: this adapter can't send (its session is not logged on, or another process has it), so orders wait,
  // or other workers claim them. The worker asks before each claim and each try.
  [[nodiscard]] virtual bool can_send_now() const { return true; }

  // Ends by the deadline, whatever the broker does. Throws for programming errors only; the worker takes that
  // for INTERNAL_ERROR in doubt.
  virtual Task<SendOutcome> send(SendRequest request, Deadline deadline) = 0;

  [[nodiscard]] virtual bool can_find() const { return false; }
  // Only where can_find().
  virtual Task<FindOutcome> find(SendRequest request, Deadline deadline) = 0;
};

struct AskedOrder {
  std::int64_t outbox_id = 0;
  std::string idempotency_key;
  Order order;
};

// The broker's own book, as `todoke orders reconcile` asks it: a page of orders at a time.
class BrokerBook {
 public:
  struct Answers {
    // One for each order, in their order. None: the broker was not asked; a notice says why.
    std::vector<std::optional<FindOutcome>> of;
    std::vector<std::string> notices;  // for operators, each once for all orders that it is about
  };

  virtual ~BrokerBook() = default;
  BrokerBook() = default;
  BrokerBook(const BrokerBook&) = delete;
  BrokerBook& operator=(const BrokerBook&) = delete;

  // Ends by itself, whatever the broker does. Throws when the database can't be used.
  virtual Task<Answers> ask(std::vector<AskedOrder> orders) = 0;
};

// Through an adapter that this process may use: one order after the other.
class AdapterBook final : public BrokerBook {
 public:
  // `adapter` can find and outlives the book. `limit` is for one order.
  AdapterBook(BrokerAdapter& adapter, std::chrono::milliseconds limit) : adapter_(adapter), limit_(limit) {}
  Task<Answers> ask(std::vector<AskedOrder> orders) override;

 private:
  BrokerAdapter& adapter_;
  std::chrono::milliseconds limit_;
};

}  // namespace todoke::orders
