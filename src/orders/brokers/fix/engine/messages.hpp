// From the plain structs of session.hpp to QuickFIX's messages and back. C++14, for the session only.
#pragma once

#include <quickfix/Message.h>
#include <string>

#include "orders/brokers/fix/engine/session.hpp"

namespace todoke {
namespace fix {

// Empty: it is not there.
std::string text_of(const FIX::FieldMap& fields, int tag);

FIX::Message to_message(const NewOrder& order);
FIX::Message to_message(const StatusRequest& request);
FIX::Message test_request();
Report to_report(const FIX::Message& message);
}  // namespace fix
}  // namespace todoke
