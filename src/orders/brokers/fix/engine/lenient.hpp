// Reads a message that the engine has refused because of its form: a fill may stand in it. C++14, and plain
// as session.hpp.
#pragma once

#include <string>

#include "orders/brokers/fix/engine/session.hpp"

namespace todoke {
namespace fix {

struct LenientReport {
  bool is_report = false;  // an ExecutionReport that says its ExecID and its OrdStatus
  std::string msg_seq_num;
  Report report;  // only of a report
};

// `text` may hold any bytes. Any field may stand anywhere; of a tag that comes several times the first
// counts.
LenientReport read_leniently(const std::string& text);

}  // namespace fix
}  // namespace todoke
