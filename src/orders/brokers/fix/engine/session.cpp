#include "orders/brokers/fix/engine/session.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketInitiator.h>
#include <stdexcept>
#include <thread>
#include <utility>

#include "orders/brokers/fix/engine/application.hpp"
#include "orders/brokers/fix/engine/dictionary.hpp"
#include "orders/brokers/fix/engine/messages.hpp"
#include "orders/brokers/fix/engine/number_store.hpp"

namespace todoke {
namespace fix {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// How long a logon may wait for its answer before the connection is given up.
constexpr int kLogonTimeoutSec = 10;

FIX::SessionID id_of(const SessionSettings& settings) {
  return FIX::SessionID("FIX.4.4", settings.sender_comp_id, settings.target_comp_id);
}

FIX::SessionSettings quickfix_settings(const SessionSettings& settings) {
  FIX::Dictionary all;
  all.setString("ConnectionType", "initiator");
  all.setInt("ReconnectInterval", settings.reconnect_sec);
  all.setString("SocketNodelay", "Y");
  FIX::Dictionary one;
  one.setString("SocketConnectHost", settings.host);
  one.setInt("SocketConnectPort", settings.port);
  one.setInt("HeartBtInt", settings.heartbeat_sec);
  one.setInt("LogonTimeout", kLogonTimeoutSec);
  one.setString("StartTime", "00:00:00");
  one.setString("EndTime", "00:00:00");
  one.setString("UseDataDictionary", "N");  // the one that is compiled in is set afterwards
  one.setString("PersistMessages", "N");    // every resend is a gap fill
  one.setString("ResetOnLogon", settings.reset_on_logon ? "Y" : "N");
  FIX::SessionSettings made;
  made.set(all);
  made.set(id_of(settings), one);
  return made;
}

struct Waiting {
  FIX::Message message;
  SteadyTime deadline;
  std::function<void(Sent)> done;
};

}  // namespace

struct Session::Impl {
  Impl(SessionSettings given, Events told)
      : settings(std::move(given)),
        events(std::move(told)),
        id(id_of(settings)),
        application(settings, events, [this] { ask(); }),
        store(settings.next_out, settings.next_in, [this] { events.reset(); }),
        stores(store),
        logs(events, application),
        initiator(application, stores, quickfix_settings(settings), logs) {
    FIX::Session::lookupSession(id)->setDataDictionaryProvider(dictionary());
  }

  bool push(Waiting waiting) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (stopping || queue.size() >= kQueueMax) return false;
      queue.push_back(std::move(waiting));
    }
    wake.notify_one();
    return true;
  }

  // For a TestRequest.
  void ask() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      is_to_ask = true;
    }
    wake.notify_one();
  }

  void send_loop() {
    pthread_setname_np(pthread_self(), "fix-send");
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stopping || is_to_ask || !queue.empty(); });
      if (is_to_ask && !stopping) {
        is_to_ask = false;
        lock.unlock();
        auto request = test_request();
        FIX::Session::sendToTarget(request, id);
        lock.lock();
        continue;
      }
      if (queue.empty()) return;
      auto waiting = std::move(queue.front());
      queue.pop_front();
      const bool drop = stopping;
      lock.unlock();
      waiting.done(drop ? Sent::no : send(waiting));
      lock.lock();
    }
  }

  Sent send(Waiting& waiting) {
    if (std::chrono::steady_clock::now() >= waiting.deadline) return Sent::no;
    application.begin_send();
    if (FIX::Session::sendToTarget(waiting.message, id)) return Sent::yes;
    return application.has_passed() ? Sent::in_doubt : Sent::no;
  }

  SessionSettings settings;
  Events events;
  FIX::SessionID id;
  Application application;
  NumberStore store;
  NumberStoreFactory stores;
  EventLogFactory logs;
  FIX::SocketInitiator initiator;

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Waiting> queue;
  bool stopping = false;
  bool is_to_ask = false;
  std::thread sender;
};

Session::Session(SessionSettings settings, Events events) {
  try {
    impl_ = std::make_unique<Impl>(std::move(settings), std::move(events));
  } catch (const FIX::Exception& error) {
    throw std::runtime_error(std::string("FIX session: ") + error.what());
  }
}

Session::~Session() {
  stop(std::chrono::milliseconds(0));
}

void Session::start() {
  try {
    impl_->initiator.start();
  } catch (const FIX::Exception& error) {
    throw std::runtime_error(std::string("FIX session: ") + error.what());
  }
  impl_->sender = std::thread([this] { impl_->send_loop(); });
}

void Session::stop(std::chrono::milliseconds patience) {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  if (!impl_->sender.joinable()) return;  // never started
  impl_->sender.join();
  FIX::Session::lookupSession(impl_->id)->logout();
  impl_->application.wait_for_logout(patience);
  impl_->initiator.stop(true);
}

bool Session::is_logged_on() const {
  return impl_->application.is_logged_on();
}

Numbers Session::numbers() const {
  return impl_->store.numbers();
}

void Session::allow_until(std::chrono::steady_clock::time_point end) {
  impl_->application.allow_until(end);
}

bool Session::send(const NewOrder& order, SteadyTime deadline, std::function<void(Sent)> done) {
  return impl_->push({to_message(order), deadline, std::move(done)});
}

bool Session::send(const StatusRequest& request, SteadyTime deadline, std::function<void(Sent)> done) {
  return impl_->push({to_message(request), deadline, std::move(done)});
}

}  // namespace fix
}  // namespace todoke
