// The sequence numbers of a session, in memory. Messages are not kept: none is ever sent again.
#pragma once

#include <atomic>
#include <functional>
#include <quickfix/MessageStore.h>
#include <string>
#include <vector>

#include "orders/brokers/fix/engine/session.hpp"

namespace todoke {
namespace fix {

class NumberStore final : public FIX::MessageStore {
 public:
  NumberStore(int next_out, int next_in, std::function<void()> on_reset)
      : next_out_(next_out), next_in_(next_in), on_reset_(std::move(on_reset)) {}

  Numbers numbers() const {
    Numbers numbers;
    numbers.next_out = next_out_;
    numbers.next_in = next_in_;
    numbers.resets = resets_;
    return numbers;
  }

  bool set(int, const std::string&) throw(FIX::IOException) override { return true; }
  void get(int, int, std::vector<std::string>& messages) const throw(FIX::IOException) override {
    messages.clear();
  }
  int getNextSenderMsgSeqNum() const throw(FIX::IOException) override { return next_out_; }
  int getNextTargetMsgSeqNum() const throw(FIX::IOException) override { return next_in_; }
  void setNextSenderMsgSeqNum(int value) throw(FIX::IOException) override { next_out_ = value; }
  void setNextTargetMsgSeqNum(int value) throw(FIX::IOException) override { next_in_ = value; }
  void incrNextSenderMsgSeqNum() throw(FIX::IOException) override { ++next_out_; }
  void incrNextTargetMsgSeqNum() throw(FIX::IOException) override { ++next_in_; }
  // Always now: QuickFIX begins the numbers anew when a day lies between, and here only a logon does that.
  FIX::UtcTimeStamp getCreationTime() const throw(FIX::IOException) override { return FIX::UtcTimeStamp(); }
  void reset() throw(FIX::IOException) override {
    next_out_ = 1;
    next_in_ = 1;
    ++resets_;
    on_reset_();
  }
  void refresh() throw(FIX::IOException) override {}

 private:
  std::atomic<int> next_out_;
  std::atomic<int> next_in_;
  std::atomic<unsigned> resets_{0};
  std::function<void()> on_reset_;
};

// Gives the session the one store that its owner reads.
class NumberStoreFactory final : public FIX::MessageStoreFactory {
 public:
  explicit NumberStoreFactory(NumberStore& store) : store_(store) {}
  FIX::MessageStore* create(const FIX::SessionID&) override { return &store_; }
  void destroy(FIX::MessageStore*) override {}

 private:
  NumberStore& store_;
};

}  // namespace fix
}  // namespace todoke
