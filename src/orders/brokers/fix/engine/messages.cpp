#include "orders/brokers/fix/engine/messages.hpp"

#include <quickfix/FixFieldNumbers.h>
#include <quickfix/FixValues.h>

namespace todoke {
namespace fix {
namespace {

// Fields are set by tag with a text: QuickFIX's typed fields would take amounts through a double.
void set_text(FIX::FieldMap& fields, int tag, const std::string& text) {
  if (!text.empty()) fields.setField(tag, text);
}

std::string now_text() {
  constexpr int kMillis = 3;
  return FIX::UtcTimeStampConvertor::convert(FIX::UtcTimeStamp(), kMillis);
}

}  // namespace

std::string text_of(const FIX::FieldMap& fields, int tag) {
  return fields.isSetField(tag) ? fields.getField(tag) : std::string();
}

FIX::Message to_message(const NewOrder& order) {
  FIX::Message message;
  message.getHeader().setField(FIX::FIELD::MsgType, FIX::MsgType_NewOrderSingle);
  if (order.poss_resend) message.getHeader().setField(FIX::FIELD::PossResend, "Y");
  set_text(message, FIX::FIELD::ClOrdID, order.cl_ord_id);
  set_text(message, FIX::FIELD::Account, order.account);
  set_text(message, FIX::FIELD::HandlInst, "1");  // automated, without a person
  set_text(message, FIX::FIELD::Symbol, order.symbol);
  set_text(message, FIX::FIELD::Side, std::string(1, order.side));
  set_text(message, FIX::FIELD::TransactTime, now_text());
  set_text(message, FIX::FIELD::OrderQty, order.qty);
  set_text(message, FIX::FIELD::OrdType, order.price.empty() ? "1" : "2");  // market, limit
  set_text(message, FIX::FIELD::Price, order.price);
  set_text(message, FIX::FIELD::TimeInForce, std::string(1, order.time_in_force));
  return message;
}

FIX::Message test_request() {
  FIX::Message message;
  message.getHeader().setField(FIX::FIELD::MsgType, FIX::MsgType_TestRequest);
  set_text(message, FIX::FIELD::TestReqID, "logon");
  return message;
}

FIX::Message to_message(const StatusRequest& request) {
  FIX::Message message;
  message.getHeader().setField(FIX::FIELD::MsgType, FIX::MsgType_OrderStatusRequest);
  set_text(message, FIX::FIELD::ClOrdID, request.cl_ord_id);
  set_text(message, FIX::FIELD::Account, request.account);
  set_text(message, FIX::FIELD::Symbol, request.symbol);
  set_text(message, FIX::FIELD::Side, std::string(1, request.side));
  return message;
}

Report to_report(const FIX::Message& message) {
  Report report;
  report.cl_ord_id = text_of(message, FIX::FIELD::OrigClOrdID);
  if (report.cl_ord_id.empty()) report.cl_ord_id = text_of(message, FIX::FIELD::ClOrdID);
  report.order_id = text_of(message, FIX::FIELD::OrderID);
  report.exec_id = text_of(message, FIX::FIELD::ExecID);
  report.exec_type = text_of(message, FIX::FIELD::ExecType);
  report.exec_ref_id = text_of(message, FIX::FIELD::ExecRefID);
  report.ord_status = text_of(message, FIX::FIELD::OrdStatus);
  report.ord_rej_reason = text_of(message, FIX::FIELD::OrdRejReason);
  report.last_qty = text_of(message, FIX::FIELD::LastQty);
  report.last_px = text_of(message, FIX::FIELD::LastPx);
  report.cum_qty = text_of(message, FIX::FIELD::CumQty);
  report.avg_px = text_of(message, FIX::FIELD::AvgPx);
  report.transact_time = text_of(message, FIX::FIELD::TransactTime);
  if (report.transact_time.empty())
    report.transact_time = text_of(message.getHeader(), FIX::FIELD::OrigSendingTime);
  if (report.transact_time.empty())
    report.transact_time = text_of(message.getHeader(), FIX::FIELD::SendingTime);
  report.text = text_of(message, FIX::FIELD::Text);
  return report;
}

}  // namespace fix
}  // namespace todoke
