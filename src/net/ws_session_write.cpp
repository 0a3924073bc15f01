// The output queue of a connection (ws_session.hpp).
#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "net/ws_session.hpp"

namespace todoke::net {

namespace {

// One gathered write ends at this many bytes, so that write_timeout means the same for a few large frames as
// for many small ones: 20 s for 256 KiB is 13 KiB/s.
constexpr std::size_t kWriteBytesMax = 256 * 1024;

// A queue that has grown beyond this many frames gives its memory back when it is empty.
constexpr std::size_t kKeptFramesMax = 64;

}  // namespace

void WsSession::send(FramePtr frame) {
  if (closing()) return;
  const bool deflate = deflate_ && frame->payload().size() >= options_.compress_bytes_min;
  Outgoing out;
  if (role_ == WsRole::client) {
    auto masked =
        std::make_shared<const std::string>(masked_frame(frame->opcode(), frame->payload(), deflate));
    out.bytes = *masked;
    out.owner = std::move(masked);
  } else {
    out.bytes = deflate ? frame->compressed() : frame->plain();
    out.owner = std::move(frame);
  }
  if (out.bytes.size() > options_.queue_bytes_max - std::min(queued_bytes_, options_.queue_bytes_max)) {
    if (metrics_ != nullptr) metrics_->slow_closed.add();
    drop_unsent();
    begin_close(close_code::policy, "too slow");
    return;
  }
  queued_bytes_ += out.bytes.size();
  queue_.push_back(std::move(out));
  if (metrics_ != nullptr) metrics_->messages_sent.add();
  schedule_flush();
}

void WsSession::ping(std::string_view payload) {
  enqueue_control(WsControl::ping, payload);
}

void WsSession::enqueue_control(WsControl opcode, std::string_view payload) {
  if (closing()) return;
  // Bounded by reading_blocked(): a peer that does not take the pongs is not read from either.
  const std::string frame =
      control_frame(opcode, payload, role_ == WsRole::client ? Masking::random : Masking::none);
  control_ += frame;
  queued_bytes_ += frame.size();
  schedule_flush();
}

void WsSession::drop_unsent() {
  for (const Outgoing& out : queue_) queued_bytes_ -= out.bytes.size();
  queue_.clear();
  while (batch_.size() > batch_at_ + batch_in_flight_) {
    queued_bytes_ -= batch_.back().bytes.size();
    batch_.pop_back();
  }
}

void WsSession::schedule_flush() {
  if (flushing_ || unheard_ || broken_) return;
  flushing_ = true;
  asio::post(executor_, [self = shared_from_this()] {
    spawn(self->executor_, write_queued(self),
          [self](const std::exception_ptr& error) { self->flush_ended(error); });
  });
}

Task<void> WsSession::write_queued(std::shared_ptr<WsSession> self) {
  std::array<std::string_view, kWritePartsMax> parts;
  while (!self->broken_) {
    const std::size_t count = self->collect(parts);
    if (count == 0) break;
    self->write_deadline_ = std::chrono::steady_clock::now() + self->options_.write_timeout;
    self->arm();
    co_await self->transport_->write(std::span(parts).first(count));
    self->written();
  }
}

std::size_t WsSession::collect(std::array<std::string_view, kWritePartsMax>& parts) {
  std::size_t count = 0;
  bytes_in_flight_ = 0;
  const auto add = [&](std::string_view bytes) {
    parts[count++] = bytes;
    bytes_in_flight_ += bytes.size();
  };
  if (!control_.empty()) {
    control_in_flight_.swap(control_);
    add(control_in_flight_);
  }
  if (batch_at_ == batch_.size()) {
    batch_.clear();
    batch_at_ = 0;
    batch_.swap(queue_);
  }
  batch_in_flight_ = 0;
  while (batch_at_ + batch_in_flight_ < batch_.size() && count < kWritePartsMax &&
         bytes_in_flight_ < kWriteBytesMax) {
    add(batch_[batch_at_ + batch_in_flight_++].bytes);
  }
  const bool all_data = batch_at_ + batch_in_flight_ == batch_.size() && queue_.empty();
  if (all_data && closing_ && !close_in_flight_ && count < kWritePartsMax) {
    close_in_flight_ = true;
    add(close_frame_);
  }
  return count;
}

void WsSession::written() {
  write_deadline_.reset();
  for (std::size_t i = 0; i < batch_in_flight_; ++i) batch_[batch_at_++].owner.reset();
  batch_in_flight_ = 0;
  control_in_flight_.clear();
  if (metrics_ != nullptr) metrics_->bytes_sent.add(bytes_in_flight_);
  const bool was_blocked = reading_blocked();
  queued_bytes_ -= bytes_in_flight_;
  if (was_blocked && !reading_blocked()) changed();
  report_written();
  if (close_in_flight_) {
    close_deadline_ = std::min(*close_deadline_, std::chrono::steady_clock::now() + options_.close_timeout);
    arm();
  }
}

// A peer that sends and goes away resets the connection at the first answer. The messages that arrived before
// are still in the socket: reading goes on, and ends by itself after them.
void WsSession::write_failed(std::string_view why) {
  if (broken_ || closing_) return cut(why);
  log::debug("ws", "the peer takes nothing any more", {{"why", why}});
  unheard_ = true;
  queue_.clear();
  batch_.clear();
  batch_at_ = batch_in_flight_ = 0;
  control_.clear();
  queued_bytes_ = 0;
  write_deadline_.reset();
  arm();
}

void WsSession::flush_ended(const std::exception_ptr& error) {
  flushing_ = false;
  if (error) {
    write_failed(describe(error));
  } else if (!broken_ && (!queue_.empty() || !control_.empty() || (closing_ && !close_in_flight_))) {
    schedule_flush();
  } else {
    if (queue_.capacity() > kKeptFramesMax) std::vector<Outgoing>().swap(queue_);
    if (batch_.capacity() > kKeptFramesMax) std::vector<Outgoing>().swap(batch_);
  }
  changed();
}

}  // namespace todoke::net
