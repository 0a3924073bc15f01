#include "orders/brokers/fix/engine/application.hpp"

#include <cstdlib>
#include <quickfix/FixFieldNumbers.h>
#include <quickfix/FixValues.h>
#include <set>

#include "orders/brokers/fix/engine/lenient.hpp"
#include "orders/brokers/fix/engine/messages.hpp"

namespace todoke {
namespace fix {

void Application::set_logged_on(bool logged_on) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (logged_on_ == logged_on) return;
    logged_on_ = logged_on;
  }
  changed_.notify_all();
  events_.logged_on(logged_on);
}

bool Application::wait_for_logout(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return !logged_on_; });
}

void Application::toAdmin(FIX::Message& message, const FIX::SessionID&) {
  const auto type = text_of(message.getHeader(), FIX::FIELD::MsgType);
  if (type == FIX::MsgType_Reject) tell_rejected(message, false, FIX::FIELD::SessionRejectReason);
  // A gap fill passes over the TestRequest that was sent before it, too.
  if (type == FIX::MsgType_SequenceReset && awaits_answer_) ask_();
  if (type != FIX::MsgType_Logon || settings_.username.empty()) return;
  message.setField(FIX::FIELD::Username, settings_.username);
  message.setField(FIX::FIELD::Password, settings_.password);
}

void Application::toApp(FIX::Message& message, const FIX::SessionID&) throw(FIX::DoNotSend) {
  const auto& header = message.getHeader();
  const auto type = text_of(header, FIX::FIELD::MsgType);
  // The only one that comes from QuickFIX's thread.
  if (type == FIX::MsgType_BusinessMessageReject) {
    tell_rejected(message, true, FIX::FIELD::BusinessRejectReason);
    return;
  }
  // A session that repeats an order by itself would execute it twice where a worker repeats it too. The store
  // keeps no message to repeat; this check holds even if it did.
  if (text_of(header, FIX::FIELD::PossDupFlag) == "Y") throw FIX::DoNotSend();
  // An order handed over while the session is not logged on would take a number and never leave.
  if (!logged_on_) throw FIX::DoNotSend();
  if (std::chrono::steady_clock::now().time_since_epoch().count() >= allowed_until_) throw FIX::DoNotSend();
  Asked asked;
  asked.cl_ord_id = text_of(message, FIX::FIELD::ClOrdID);
  asked.is_order = type == FIX::MsgType_NewOrderSingle;
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_[std::atoi(text_of(header, FIX::FIELD::MsgSeqNum).c_str())] = asked;
  if (asked_.size() > kRememberedMax) asked_.erase(asked_.begin());
  passed_ = true;
}

void Application::fromAdmin(const FIX::Message& message,
                            const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                                         FIX::IncorrectTagValue, FIX::RejectLogon) {
  const auto type = text_of(message.getHeader(), FIX::FIELD::MsgType);
  if (type == FIX::MsgType_Reject) tell_refused(message, false, FIX::FIELD::SessionRejectReason);
  if (type == FIX::MsgType_Heartbeat && awaits_answer_.exchange(false)) set_logged_on(true);
  if (type == FIX::MsgType_Logout && message.isSetField(FIX::FIELD::Text)) {
    events_.note("the other side logs out and says why");
    events_.trouble("the other side logs out: " + text_of(message, FIX::FIELD::Text));
  }
}

void Application::fromApp(const FIX::Message& message,
                          const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                                       FIX::IncorrectTagValue, FIX::UnsupportedMessageType) {
  const auto type = text_of(message.getHeader(), FIX::FIELD::MsgType);
  if (type == FIX::MsgType_ExecutionReport) {
    events_.report(to_report(message));
  } else if (type == FIX::MsgType_BusinessMessageReject) {
    tell_refused(message, true, FIX::FIELD::BusinessRejectReason);
  } else if (type == FIX::MsgType_OrderCancelReject) {
    events_.note("an OrderCancelReject came, although nothing was cancelled from here");
  } else {
    throw FIX::UnsupportedMessageType();
  }
}

void Application::tell_refused(const FIX::Message& message, bool business, int reason_tag) {
  Refused refused;
  refused.business = business;
  refused.reason = text_of(message, reason_tag);
  refused.text = text_of(message, FIX::FIELD::Text);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = asked_.find(std::atoi(text_of(message, FIX::FIELD::RefSeqNum).c_str()));
    if (found != asked_.end()) {
      refused.cl_ord_id = found->second.cl_ord_id;
      refused.of_order = found->second.is_order;
    }
  }
  if (refused.cl_ord_id.empty() && business) {
    refused.cl_ord_id = text_of(message, FIX::FIELD::BusinessRejectRefID);
    refused.of_order = text_of(message, FIX::FIELD::RefMsgType) == FIX::MsgType_NewOrderSingle;
  }
  if (refused.cl_ord_id.empty()) {
    events_.note("the other side refused a message of the session");
  } else {
    events_.refused(refused);
  }
}

void Application::tell_rejected(const FIX::Message& message, bool business, int reason_tag) {
  Rejection rejection;
  rejection.business = business;
  rejection.msg_type = text_of(message, FIX::FIELD::RefMsgType);
  rejection.tag = text_of(message, FIX::FIELD::RefTagID);
  rejection.reason = text_of(message, reason_tag);
  rejection.was_rescued = !business && rescue_report(message);
  events_.rejected(rejection);
}

// The engine refuses a tag that comes twice, whatever its dictionary allows, so a group that a broker has
// made up would cost the fill that is beside it.
bool Application::rescue_report(const FIX::Message& reject) {
  static const std::set<std::string> kOfForm{"0", "1", "2", "3", "4", "5", "6", "13", "14", "15", "16"};
  if (kOfForm.count(text_of(reject, FIX::FIELD::SessionRejectReason)) == 0) return false;
  auto read = read_leniently(last_in_);
  if (!read.is_report || read.msg_seq_num != text_of(reject, FIX::FIELD::RefSeqNum)) return false;
  events_.report(std::move(read.report));
  return true;
}

void EventLog::onEvent(const std::string& text) {
  // Some of QuickFIX's events quote the message that they complain of.
  const auto quoted = text.find("8=FIX");
  const auto shown = quoted == std::string::npos ? text : text.substr(0, quoted) + "(message)";
  events_.note(shown);
  for (const auto* sign :
       {"too low", "Timed out", "Socket Error", "Connection refused", "Connection reset"}) {
    if (shown.find(sign) == std::string::npos) continue;
    events_.trouble(shown);
    break;
  }
}

}  // namespace fix
}  // namespace todoke
