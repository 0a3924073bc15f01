// From the plain structs of session.hpp to QuickFIX's messages and back. C++14, for the session only.
#pragma once

#include <quickfix/Message.h>
#include <string>

#include "fix/session.hpp"

namespace todoke {
namespace fix {

// Empty: it is not there.
std::string text_of(const FIX::FieldMap& fields, int tag);

FIX::Message to_message(const NewOrder& order);
FIX::Message to_message(const StatusRequest& request);
Report to_report(const FIX::Message& message);
// The fields of a message as it came, the header's among them, without asking whether they may be there; of a
// tag that comes several times the first.
FIX::Message read_leniently(const std::string& text);

}  // namespace fix
}  // namespace todoke
