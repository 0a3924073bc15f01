#include "orders/brokers/fix/engine/lenient.hpp"

#include <cstddef>
#include <quickfix/FixFieldNumbers.h>
#include <quickfix/FixValues.h>
#include <sstream>

#include "orders/brokers/fix/engine/messages.hpp"

namespace todoke {
namespace fix {
namespace {

// 0: it is none. FIX has tags of up to five digits; more than nine would not fit.
int tag_of(const std::string& digits) {
  constexpr std::size_t kDigitsMax = 9;
  if (digits.empty() || digits.size() > kDigitsMax) return 0;
  int tag = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return 0;
    tag = tag * 10 + (c - '0');
  }
  return tag;
}

FIX::Message fields_of(const std::string& text) {
  FIX::Message message;
  std::istringstream fields(text);
  std::string field;
  while (std::getline(fields, field, '\x01')) {
    const auto equals = field.find('=');
    const int tag = equals == std::string::npos ? 0 : tag_of(field.substr(0, equals));
    FIX::FieldMap& place =
        FIX::Message::isHeaderField(tag) ? static_cast<FIX::FieldMap&>(message.getHeader()) : message;
    if (tag > 0 && !place.isSetField(tag)) place.setField(tag, field.substr(equals + 1));
  }
  return message;
}

}  // namespace

LenientReport read_leniently(const std::string& text) {
  const auto message = fields_of(text);
  LenientReport read;
  read.msg_seq_num = text_of(message.getHeader(), FIX::FIELD::MsgSeqNum);
  read.report = to_report(message);
  read.is_report = text_of(message.getHeader(), FIX::FIELD::MsgType) == FIX::MsgType_ExecutionReport &&
                   !read.report.exec_id.empty() && !read.report.ord_status.empty();
  return read;
}

}  // namespace fix
}  // namespace todoke
