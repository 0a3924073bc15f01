// The callbacks of QuickFIX: turns its messages into Events and decides, message by message, which may leave.
// C++14.
//
// Logged on means here that the other side has answered a TestRequest since its Logon, and so has seen that
// Logon's number. Where the number was too high, as after a crash, the other side requests the missing
// messages, and the gap fill in answer passes over everything sent so far: an order among it would be lost.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <quickfix/Application.h>
#include <quickfix/Log.h>
#include <string>
#include <utility>

#include "orders/brokers/fix/engine/session.hpp"

namespace todoke {
namespace fix {

class Application final : public FIX::Application {
 public:
  // Messages of ours that a reject can be traced back to by its RefSeqNum.
  static constexpr std::size_t kRememberedMax = 8192;

  // `ask` has a TestRequest sent on another thread than the caller's, who holds QuickFIX's lock.
  Application(const SessionSettings& settings, const Events& events, std::function<void()> ask)
      : settings_(settings), events_(events), ask_(std::move(ask)) {}

  bool is_logged_on() const { return logged_on_; }
  // False: still logged on after that time.
  bool wait_for_logout(std::chrono::milliseconds patience);
  void allow_until(std::chrono::steady_clock::time_point end) {
    allowed_until_ = end.time_since_epoch().count();
  }
  // On QuickFIX's thread: the message that it reads next.
  void came(const std::string& text) { last_in_ = text; }
  // On the sending thread, around a send: whether the message has passed toApp.
  void begin_send() { passed_ = false; }
  bool has_passed() const { return passed_; }

  void onCreate(const FIX::SessionID&) override {}
  void onLogon(const FIX::SessionID&) override {
    awaits_answer_ = true;
    ask_();
  }
  void onLogout(const FIX::SessionID&) override {
    awaits_answer_ = false;
    set_logged_on(false);
  }
  void toAdmin(FIX::Message& message, const FIX::SessionID&) override;
  void toApp(FIX::Message& message, const FIX::SessionID&) throw(FIX::DoNotSend) override;
  void fromAdmin(const FIX::Message& message,
                 const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                              FIX::IncorrectTagValue, FIX::RejectLogon) override;
  void fromApp(const FIX::Message& message,
               const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                            FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override;

 private:
  struct Asked {
    std::string cl_ord_id;
    bool is_order = false;
  };
  void set_logged_on(bool logged_on);
  void tell_refused(const FIX::Message& message, bool business, int reason_tag);
  void tell_rejected(const FIX::Message& message, bool business, int reason_tag);
  // Reads the report that the session is about to reject because of its form, and passes it on. False: it is
  // no report, or can't be read.
  bool rescue_report(const FIX::Message& reject);

  const SessionSettings& settings_;
  const Events& events_;
  std::function<void()> ask_;
  std::atomic<bool> awaits_answer_{false};  // since the Logon
  std::atomic<bool> logged_on_{false};
  std::atomic<std::chrono::steady_clock::rep> allowed_until_{0};
  bool passed_ = false;
  std::string last_in_;  // of QuickFIX's thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Asked> asked_;  // by MsgSeqNum
};

// Tells the events of the session, without the content of messages.
class EventLog final : public FIX::Log {
 public:
  EventLog(const Events& events, Application& application) : events_(events), application_(application) {}
  void clear() override {}
  void backup() override {}
  void onIncoming(const std::string& text) override { application_.came(text); }
  void onOutgoing(const std::string&) override {}
  void onEvent(const std::string& text) override;

 private:
  const Events& events_;
  Application& application_;
};

class EventLogFactory final : public FIX::LogFactory {
 public:
  EventLogFactory(const Events& events, Application& application) : log_(events, application) {}
  FIX::Log* create() override { return &log_; }
  FIX::Log* create(const FIX::SessionID&) override { return &log_; }
  void destroy(FIX::Log*) override {}

 private:
  EventLog log_;
};

}  // namespace fix
}  // namespace todoke
