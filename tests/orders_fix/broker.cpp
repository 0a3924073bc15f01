#include "broker.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <netinet/in.h>
#include <quickfix/Application.h>
#include <quickfix/Log.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketAcceptor.h>
#include <set>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "orders/brokers/fix/engine/dictionary.hpp"

namespace todoke {
namespace test {
namespace {

constexpr std::chrono::seconds kPatience(30);

bool bind_to(int fd, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// A port below those that the system hands out by itself, kept from other tests also while the broker is
// stopped: bound, but nobody listens.
class Port {
 public:
  Port() {
    constexpr int kFirst = 20000;
    constexpr int kPorts = 12000;
    for (int tried = 0; tried < kPorts; ++tried) {
      number_ = kFirst + (static_cast<int>(getpid()) * 37 + tried) % kPorts;
      const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
      const bool is_free = bind_to(probe, number_);
      ::close(probe);
      if (!is_free) continue;
      kept_ = ::socket(AF_INET, SOCK_STREAM, 0);
      const int yes = 1;
      ::setsockopt(kept_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind_to(kept_, number_)) return;
      ::close(kept_);
    }
    throw std::runtime_error("no free port");
  }
  ~Port() { ::close(kept_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  int number() const { return number_; }

 private:
  int number_ = 0;
  int kept_ = -1;
};

FixMessage plain(const FIX::Message& message) {
  FixMessage made;
  made.type = message.getHeader().getField(FIX::FIELD::MsgType);
  for (const auto& field : message) made.fields[field.getTag()] = field.getString();
  const auto flag = [&](int tag) {
    return message.getHeader().isSetField(tag) && message.getHeader().getField(tag) == "Y";
  };
  made.poss_dup = flag(FIX::FIELD::PossDupFlag);
  made.poss_resend = flag(FIX::FIELD::PossResend);
  made.number = std::atoi(message.getHeader().getField(FIX::FIELD::MsgSeqNum).c_str());
  return made;
}

void put(const FixMessage& message, FIX::FieldMap& made) {
  for (const auto& field : message.fields) made.setField(field.first, field.second);
  for (const auto& field : message.repeated) made.setField(FIX::FieldBase(field.first, field.second), false);
  for (const auto& group : message.groups) {
    for (const auto& entry : group.entries) {
      FIX::Group one(group.count, group.first);
      put(entry, one);
      made.addGroup(group.count, one);
    }
  }
}

FIX::Message quickfix(const FixMessage& message) {
  FIX::Message made;
  made.getHeader().setField(FIX::FIELD::MsgType, message.type);
  put(message, made);
  return made;
}

FixMessage entry(const std::map<int, std::string>& fields, const std::vector<FixGroup>& groups = {}) {
  FixMessage made;
  made.fields = fields;
  made.groups = groups;
  return made;
}

std::vector<FixGroup> usual_groups() {
  const FixGroup sub_ids{
      802, 523, {entry({{523, "desk"}, {803, "4"}}), entry({{523, "trader"}, {803, "2"}})}};
  const FixGroup parties{453,
                         448,
                         {entry({{448, "BROKER"}, {447, "D"}, {452, "1"}}, {sub_ids}),
                          entry({{448, "CLIENT"}, {447, "D"}, {452, "3"}})}};
  const FixGroup contra{382, 375, {entry({{375, "A"}, {437, "1"}}), entry({{375, "B"}, {437, "1"}})}};
  return {parties, contra};
}

FixMessage report(const FixMessage& order, const std::string& exec_type, const std::string& ord_status) {
  static int numbered = 0;
  FixMessage made;
  made.type = "8";
  made.fields[37] = "B-" + order.at(11);
  made.fields[11] = order.at(11);
  made.fields[17] = "E" + std::to_string(++numbered);
  made.fields[150] = exec_type;
  made.fields[39] = ord_status;
  made.fields[55] = order.at(55);
  made.fields[54] = order.at(54);
  made.fields[14] = "0";
  made.fields[6] = "0";
  made.fields[151] = "0";
  made.fields[60] = "20250824-03:34:56.789";
  made.groups = usual_groups();
  return made;
}

// Every field, the header's too.
FixMessage from_wire(const std::string& text) {
  FixMessage made;
  std::istringstream fields(text);
  std::string field;
  while (std::getline(fields, field, '\x01')) {
    const auto equals = field.find('=');
    made.fields[std::atoi(field.c_str())] = field.substr(equals + 1);
  }
  made.type = made.at(35);
  made.poss_dup = made.at(43) == "Y";
  made.poss_resend = made.at(97) == "Y";
  made.number = std::atoi(made.at(34).c_str());
  return made;
}

// Sees everything that comes, also what the session then passes over.
class Tap : public FIX::Log, public FIX::LogFactory {
 public:
  explicit Tap(std::function<void(const std::string&)> incoming) : incoming_(std::move(incoming)) {}
  FIX::Log* create() override { return this; }
  FIX::Log* create(const FIX::SessionID&) override { return this; }
  void destroy(FIX::Log*) override {}
  void clear() override {}
  void backup() override {}
  void onIncoming(const std::string& text) override { incoming_(text); }
  void onOutgoing(const std::string&) override {}
  void onEvent(const std::string&) override {}

 private:
  std::function<void(const std::string&)> incoming_;
};

// The same store for every start.
class KeptStore : public FIX::MessageStoreFactory {
 public:
  FIX::MessageStore* create(const FIX::SessionID&) override { return &store; }
  void destroy(FIX::MessageStore*) override {}
  FIX::MemoryStore store;
};

}  // namespace

struct Broker::Impl : FIX::Application {
  FIX::SessionID id{"FIX.4.4", "BROKER", "TODOKE"};
  Port port;
  KeptStore store;
  Tap tap{[this](const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex);
    got.push_back(from_wire(text));
    if (got.back().type == "A") password = got.back().at(554);
  }};
  std::unique_ptr<FIX::SocketAcceptor> acceptor;

  mutable std::mutex mutex;
  std::vector<FixMessage> got;
  std::map<std::string, FixMessage> book;  // the last report of each ClOrdID
  std::function<FixAnswer(const FixMessage&)> on_order = whole;
  std::function<FixAnswer(const FixMessage&)> on_request;
  std::string password;

  void onCreate(const FIX::SessionID&) override {}
  void onLogon(const FIX::SessionID&) override {}
  void onLogout(const FIX::SessionID&) override {}
  void toAdmin(FIX::Message&, const FIX::SessionID&) override {}
  void toApp(FIX::Message& message, const FIX::SessionID&) throw(FIX::DoNotSend) override {
    const auto sent = plain(message);
    const std::lock_guard<std::mutex> lock(mutex);
    if (sent.type == "8" && sent.at(150) != "I" && sent.at(39) != "8") book[sent.at(11)] = sent;
  }
  void fromAdmin(const FIX::Message&,
                 const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                              FIX::IncorrectTagValue, FIX::RejectLogon) override {}
  void fromApp(const FIX::Message& message,
               const FIX::SessionID&) throw(FIX::FieldNotFound, FIX::IncorrectDataFormat,
                                            FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
    const auto came = plain(message);
    std::function<FixAnswer(const FixMessage&)> answer;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      answer = came.type == "D" ? on_order : on_request;
    }
    const auto told = answer ? answer(came) : from_book(came);
    for (const auto& one : told.messages) {
      auto made = quickfix(one);
      FIX::Session::sendToTarget(made, id);
    }
    if (told.cut) FIX::Session::lookupSession(id)->disconnect();
  }

  FixAnswer from_book(const FixMessage& request) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = book.find(request.at(11));
    if (found == book.end()) return FixAnswer{{unknown_order(request)}, false};
    return FixAnswer{{status(request, found->second.at(39), found->second.at(14), found->second.at(6))},
                     false};
  }

  FIX::SessionSettings settings() const {
    FIX::Dictionary all;
    all.setString("ConnectionType", "acceptor");
    all.setString("SocketReuseAddress", "Y");
    all.setInt("SocketAcceptPort", port.number());
    FIX::Dictionary one;
    one.setString("StartTime", "00:00:00");
    one.setString("EndTime", "00:00:00");
    one.setString("UseDataDictionary", "N");
    FIX::SessionSettings made;
    made.set(all);
    made.set(id, one);
    return made;
  }
};

Broker::Broker() : impl_(std::make_unique<Impl>()) {
  start();
}

Broker::~Broker() {
  stop();
}

int Broker::port() const {
  return impl_->port.number();
}

void Broker::start() {
  impl_->acceptor =
      std::make_unique<FIX::SocketAcceptor>(*impl_, impl_->store, impl_->settings(), impl_->tap);
  FIX::Session::lookupSession(impl_->id)->setDataDictionaryProvider(fix::dictionary());
  impl_->acceptor->start();
}

void Broker::stop() {
  if (!impl_->acceptor) return;
  impl_->acceptor->stop(true);
  impl_->acceptor.reset();
}

bool Broker::is_logged_on() const {
  return impl_->acceptor && FIX::Session::lookupSession(impl_->id)->isLoggedOn();
}

void Broker::answer_orders(std::function<FixAnswer(const FixMessage&)> answer) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->on_order = std::move(answer);
}

void Broker::answer_requests(std::function<FixAnswer(const FixMessage&)> answer) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->on_request = std::move(answer);
}

void Broker::send(const FixMessage& message) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!is_logged_on()) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("nobody logs on to the broker");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  auto made = quickfix(message);
  FIX::Session::sendToTarget(made, impl_->id);
}

void Broker::lose(const FixMessage& message) {
  if (is_logged_on()) throw std::logic_error("only while nobody is logged on");
  auto made = quickfix(message);
  FIX::Session::sendToTarget(made, impl_->id);
}

void Broker::ask_for_resend(int from, int to) {
  FixMessage request;
  request.type = "2";
  request.fields[7] = std::to_string(from);
  request.fields[16] = std::to_string(to);
  send(request);
}

std::vector<FixMessage> Broker::got(const std::string& type) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<FixMessage> found;
  std::copy_if(impl_->got.begin(), impl_->got.end(), std::back_inserter(found),
               [&](const FixMessage& message) { return message.type == type; });
  return found;
}

std::vector<std::string> Broker::executed() const {
  std::vector<std::string> ids;
  std::set<std::string> seen;
  for (const auto& order : got("D")) {
    if (seen.insert(order.at(11)).second) ids.push_back(order.at(11));
  }
  return ids;
}

std::string Broker::last_logon_password() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->password;
}

int Broker::expected_number() const {
  return impl_->store.store.getNextTargetMsgSeqNum();
}

FixMessage acknowledge(const FixMessage& order) {
  return report(order, "0", "0");
}

FixMessage pending_new(const FixMessage& order) {
  return report(order, "A", "A");
}

FixMessage fill(const FixMessage& order, const std::string& exec_id, const std::string& qty,
                const std::string& px, const std::string& cum_qty, const std::string& avg_px) {
  auto made = report(order, "F", cum_qty == order.at(38) ? "2" : "1");
  made.fields[17] = exec_id;
  made.fields[32] = qty;
  made.fields[31] = px;
  made.fields[14] = cum_qty;
  made.fields[6] = avg_px;
  return made;
}

FixMessage ended(const FixMessage& order, const std::string& ord_status, const std::string& cum_qty) {
  auto made = report(order, ord_status, ord_status);
  made.fields[14] = cum_qty;
  return made;
}

FixMessage reject(const FixMessage& order, const std::string& ord_rej_reason) {
  auto made = report(order, "8", "8");
  made.fields[37] = "NONE";
  made.fields[103] = ord_rej_reason;
  return made;
}

FixMessage status(const FixMessage& request, const std::string& ord_status, const std::string& cum_qty,
                  const std::string& avg_px) {
  auto made = report(request, "I", ord_status);
  made.fields[17] = "0";
  made.fields[14] = cum_qty;
  made.fields[6] = avg_px;
  return made;
}

FixMessage unknown_order(const FixMessage& request) {
  auto made = report(request, "I", "8");
  made.fields[17] = "0";
  made.fields[37] = "NONE";
  made.fields[103] = "5";
  return made;
}

FixAnswer whole(const FixMessage& order) {
  const auto px = order.at(44).empty() ? "100.25" : order.at(44);
  FixAnswer answer;
  answer.messages.push_back(acknowledge(order));
  answer.messages.push_back(fill(order, "F-" + order.at(11), order.at(38), px, order.at(38), px));
  return answer;
}

}  // namespace test
}  // namespace todoke
