// The life of a connection: reading, time, the end. Writing is in ws_session_write.cpp.
#include "net/ws_session.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/attempt.hpp"
#include "base/log.hpp"

namespace todoke::net {

namespace {

// One read of a busy peer. Larger reads gain little: wslay takes 4 KiB at a time.
constexpr std::size_t kBusyReadBytes = 16 * 1024;
// What a string holds without memory of its own.
constexpr std::size_t kHandshakeBytesKept = 15;

// The label of todoke_ws_closed_total: the codes that applications choose count together, so that peers can't
// make series.
std::string code_label(std::uint16_t code) {
  if (code >= 4000) return "4xxx";
  if (code >= 3000) return "3xxx";
  return std::to_string(code);
}

}  // namespace

WsSession::WsSession(WsSessionSetup setup)
    : role_(setup.role),
      deflate_(setup.agreement.deflate),
      transport_(std::move(setup.transport)),
      executor_(transport_->executor()),
      handler_(std::move(setup.handler)),
      options_(setup.options),
      metrics_(setup.metrics),
      buffered_(std::move(setup.buffered)),
      receiver_(role_, setup.agreement, options_.message_bytes_max),
      unfinished_(std::move(setup.unfinished)),
      watchdog_(executor_, [this] { on_time(); }),
      received_at_(std::chrono::steady_clock::now()),
      next_ping_(received_at_ + options_.ping_interval) {
  if (metrics_ != nullptr) metrics_->connections.add(1);
}

WsSession::~WsSession() {
  if (metrics_ != nullptr) metrics_->connections.add(-1);
}

template <class F>
void WsSession::call_handler(std::string_view what, F&& call) {
  try {
    std::forward<F>(call)();
  } catch (...) {
    log::error("ws", "a handler failed", {{"in", what}, {"error", describe(std::current_exception())}});
    begin_close(close_code::internal_error, "internal error");
  }
}

Task<void> WsSession::run(std::shared_ptr<WsSession> self) {
  arm();
  call_handler("on_open", [&] { handler_->on_open(self); });
  const auto read = co_await attempt(read_until_end());
  if (!read && is_a<NetError>(read.error())) {
    cut(describe(read.error()));
  } else if (!read) {
    log::error("ws", "a connection failed", {{"error", describe(read.error())}});
    begin_close(close_code::internal_error, "internal error");
  }
  while (flushing_ && !broken_) co_await wait_for_change();
  report_end();
  if (!broken_) co_await linger();
  cut("over");
  watchdog_.disarm();
  while (flushing_) co_await wait_for_change();
}

Task<void> WsSession::read_until_end() {
  receiver_.give(buffered_);
  while (true) {
    while (true) {
      if (reading_blocked()) co_await wait_while_blocked();
      const WsEvent event = receiver_.next();
      if (event.kind == WsEvent::Kind::starved) break;
      handle_event(event);
      if (event.kind == WsEvent::Kind::close || event.kind == WsEvent::Kind::failed) co_return;
    }
    // Also where nothing is in it: it may be the buffer of the handshake.
    if (buffered_.capacity() > kHandshakeBytesKept) std::string().swap(buffered_);
    note_starved();
    note_held();
    if (draining_) tell_drained();
    const std::span<char> buffer = read_buffer();
    waits_for_peer_ = true;
    const std::size_t size = co_await transport_->read_some(buffer);
    waits_for_peer_ = false;
    if (size == 0) {
      cut("the peer ended the connection");
      co_return;
    }
    note_read(size == buffer.size());
    receiver_.give({buffer.data(), size});
  }
}

// Large only while reads fill what they are given: a connection that then falls silent waits with the small
// one.
std::span<char> WsSession::read_buffer() {
  if (!read_filled_) {
    large_buffer_.reset();
    return small_buffer_;
  }
  if (!large_buffer_) large_buffer_ = std::make_unique_for_overwrite<char[]>(kBusyReadBytes);
  return {large_buffer_.get(), kBusyReadBytes};
}

void WsSession::note_read(bool filled) {
  read_filled_ = filled;
  received_at_ = std::chrono::steady_clock::now();
  ping_waits_ = false;
}

void WsSession::note_starved() {
  if (!receiver_.is_inside()) {
    message_deadline_.reset();
  } else if (!message_deadline_) {
    message_deadline_ = std::chrono::steady_clock::now() + options_.message_timeout;
    arm();
  }
}

void WsSession::note_held() {
  const auto bytes = receiver_.held_bytes();
  if (bytes == 0 || !unfinished_.memory) return held_.reset();
  if (!held_)
    held_ = std::make_unique<ClientMemory::Holder>(unfinished_.memory, unfinished_.client, end_by_post());
  held_->hold(bytes);
}

std::function<void()> WsSession::end_by_post() {
  return [weak = weak_from_this(), executor = executor_] {
    asio::post(executor, [weak] {
      if (const auto session = weak.lock()) session->give_way();
    });
  };
}

// The message may have come to its end meanwhile.
void WsSession::give_way() {
  if (!held_) return;
  begin_close(close_code::policy, "message too slow");
  receiver_.abandon();
  held_.reset();
  message_deadline_.reset();
}

bool WsSession::reading_blocked() const {
  // Half of the limit: what one read can still cause to be queued must not reach the limit itself.
  return !closing_ && !broken_ && (pauses_ > 0 || queued_bytes_ > options_.queue_bytes_max / 2);
}

Task<void> WsSession::wait_while_blocked() {
  while (reading_blocked()) co_await wait_for_change();
  // The peer was not silent, it was not listened to.
  received_at_ = std::chrono::steady_clock::now();
  message_deadline_.reset();
}

void WsSession::resume_reading() {
  if (pauses_ == 0) throw std::logic_error("resume_reading without pause_reading");
  --pauses_;
  if (pauses_ == 0) changed();
}

void WsSession::handle_event(const WsEvent& event) {
  switch (event.kind) {
    case WsEvent::Kind::message:
      message_deadline_.reset();  // the next one has a time of its own
      if (metrics_ != nullptr) metrics_->messages_received.add();
      if (!closing_ && !drained_)
        call_handler("on_message", [&] { handler_->on_message(event.opcode, event.payload); });
      // Not kept while the handler has reading paused.
      receiver_.forget_message();
      held_.reset();
      break;
    case WsEvent::Kind::ping:
      enqueue_control(WsControl::pong, event.payload);
      if (!closing_) call_handler("on_ping", [&] { handler_->on_ping(); });
      break;
    case WsEvent::Kind::pong:
      if (!closing_) call_handler("on_pong", [&] { handler_->on_pong(event.payload); });
      break;
    case WsEvent::Kind::close:
      if (closing_) break;
      end_code_ = event.code;
      end_reason_ = event.payload;
      queue_close_frame(event.code == close_code::none_received ? std::uint16_t{0} : event.code, {});
      break;
    case WsEvent::Kind::failed:
      log::debug("ws", "the peer broke the protocol", {{"code", event.code}, {"reason", event.payload}});
      begin_close(event.code, event.payload);
      break;
    case WsEvent::Kind::starved:
      break;
  }
}

void WsSession::close(std::uint16_t code, std::string_view reason) {
  if (!is_close_code(code)) throw std::invalid_argument("a close frame can't carry this code");
  begin_close(code, reason);
}

void WsSession::drain() {
  draining_ = true;
  if (waits_for_peer_) tell_drained();
}

void WsSession::tell_drained() {
  if (std::exchange(drained_, true) || closing()) return;
  bool answers = false;
  call_handler("on_drain", [&] { answers = handler_->on_drain(); });
  if (!answers) begin_close(close_code::service_restart, "service restart");
}

void WsSession::begin_close(std::uint16_t code, std::string_view reason) {
  if (closing_ || end_reported_) return;
  end_code_ = code;
  end_reason_ = reason;
  queue_close_frame(code, reason);
}

void WsSession::queue_close_frame(std::uint16_t code, std::string_view reason) {
  closing_ = true;
  close_frame_ = close_frame(code, reason, role_ == WsRole::client ? Masking::random : Masking::none);
  queued_bytes_ += close_frame_.size();
  close_deadline_ = std::chrono::steady_clock::now() + options_.write_timeout + options_.close_timeout;
  arm();
  schedule_flush();
  changed();
}

void WsSession::cut(std::string_view why) {
  if (broken_) return;
  log::debug("ws", "connection ended", {{"why", why}, {"code", end_code_}});
  broken_ = true;
  transport_->close();
  changed();
}

// A frame is under way and the socket is full: a close frame has no place in the stream any more.
void WsSession::give_up_writing() {
  if (!closing_) {
    if (metrics_ != nullptr) metrics_->slow_closed.add();
    end_reason_ = "too slow";
  }
  cut("a write took too long");
}

void WsSession::report_written() {
  if (!closing()) call_handler("on_written", [this] { handler_->on_written(bytes_in_flight_); });
}

void WsSession::report_end() {
  end_reported_ = true;
  closing_ = true;
  if (metrics_ != nullptr) metrics_->closed.with({code_label(end_code_)}).add();
  call_handler("on_close", [this] { handler_->on_close(end_code_, end_reason_); });
  // A handler often holds the connection; the circle ends here.
  handler_ = nullptr;
}

// A socket that is closed with unread bytes in it resets the connection, and the peer may lose the close
// frame. So the bytes that are under way are read and dropped until the peer ends its side, or the time for
// closing is up.
Task<void> WsSession::linger() {
  close_deadline_ = std::min(close_deadline_.value_or(SteadyTime::max()),
                             std::chrono::steady_clock::now() + options_.close_timeout);
  arm();
  // The server ends the TCP connection, so that the client is not left with its port in TIME_WAIT (RFC
  // 6455, 7.1.1).
  if (role_ == WsRole::server) co_await transport_->finish();
  try {
    std::size_t dropped = 1;
    while (!broken_ && dropped > 0) dropped = co_await transport_->read_some(small_buffer_);
  } catch (const NetError& error) {
    log::debug("ws", "connection ended while closing", {{"why", error.what()}});
  }
}

Task<void> WsSession::wait_for_change() {
  if (!change_) change_ = std::make_unique<Signal>(executor_);
  change_->reset();
  co_await change_->wait();
}

void WsSession::changed() {
  if (change_) change_->set();
}

SteadyTime WsSession::nearest_deadline() const {
  SteadyTime nearest = SteadyTime::max();
  if (!closing_) {
    nearest = std::min(next_ping_, received_at_ + options_.idle_timeout);
    if (message_deadline_) nearest = std::min(nearest, *message_deadline_);
  }
  if (write_deadline_) nearest = std::min(nearest, *write_deadline_);
  if (close_deadline_) nearest = std::min(nearest, *close_deadline_);
  return nearest;
}

void WsSession::arm() {
  if (broken_) return;
  const SteadyTime nearest = nearest_deadline();
  if (nearest == SteadyTime::max()) return watchdog_.disarm();
  watchdog_.arm(std::max(nearest - std::chrono::steady_clock::now(), SteadyTime::duration::zero()));
}

void WsSession::on_time() {
  if (broken_) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  if (write_deadline_ && now >= *write_deadline_) return give_up_writing();
  if (close_deadline_ && now >= *close_deadline_) return cut("closing took too long");
  if (!closing_) {
    if (reading_blocked()) {
      received_at_ = now;
      message_deadline_.reset();
    } else if (message_deadline_ && now >= *message_deadline_) {
      if (metrics_ != nullptr) metrics_->late_messages.add();
      begin_close(close_code::policy, "message too slow");
    } else if (now >= received_at_ + options_.idle_timeout) {
      begin_close(close_code::going_away, "idle timeout");
    } else if (now >= received_at_ + options_.ping_interval && !ping_waits_) {
      ping_waits_ = true;
      ping({});
    }
    // Looked at again one interval later even when a ping is out: its pong does not move the watchdog.
    next_ping_ = (ping_waits_ ? now : received_at_) + options_.ping_interval;
  }
  arm();
}

}  // namespace todoke::net
