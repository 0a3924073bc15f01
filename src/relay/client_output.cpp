#include "relay/client_output.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "net/frame.hpp"
#include "nostr/replies.hpp"
#include "relay/page_turns.hpp"

namespace todoke::relay {
namespace {

constexpr std::uint16_t kSlowReader = 1008;

std::function<void()> closer_of(const std::shared_ptr<net::WsConnection>& connection) {
  return [weak = std::weak_ptr(connection), executor = connection->executor()] {
    asio::post(executor, [weak] {
      if (const auto open = weak.lock()) open->close(kSlowReader, "too slow");
    });
  };
}

}  // namespace

ClientOutput::ClientOutput(std::shared_ptr<net::WsConnection> connection,
                           std::shared_ptr<net::ClientMemory> memory, std::string client,
                           std::function<void()> on_page_done)
    : connection_(std::move(connection)),
      on_page_done_(std::move(on_page_done)),
      held_(std::move(memory), std::move(client), closer_of(connection_)) {}

void ClientOutput::add_frames(std::vector<net::FramePtr> frames) {
  if (!connection_) return;
  for (auto& frame : frames) {
    if (waiting_.empty()) {
      send(frame);
    } else {
      waiting_.emplace_back(std::move(frame));
    }
  }
  while (waiting_.size() > kWaitingMax) send_next();
}

std::size_t ClientOutput::add_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose) {
  std::size_t bytes = 0;
  for (const auto& live : events) bytes += live->event->json().size();
  if (!connection_) return bytes;
  held_.reserve(bytes);
  waiting_.emplace_back(Page{std::move(sub), std::move(events), 0, std::move(eose), bytes});
  if (!slice_posted_) send_slice();
  return bytes;
}

void ClientOutput::drop_page(std::string_view sub) {
  const auto is_meant = [&](const auto& item) {
    const auto* page = std::get_if<Page>(&item);
    return page != nullptr && page->sub.text() == sub;
  };
  std::vector<std::size_t> dropped;
  for (const auto& item : waiting_) {
    if (is_meant(item)) dropped.push_back(std::get<Page>(item).bytes);
  }
  std::erase_if(waiting_, is_meant);
  for (const auto bytes : dropped) page_sent(bytes);
}

void ClientOutput::send_rest() {
  while (connection_ && !waiting_.empty()) send_next();
}

void ClientOutput::end() {
  connection_.reset();
  waiting_.clear();
  leaving_.clear();
  held_.give_back(held_.bytes());
}

void ClientOutput::send_slice() {
  slice_posted_ = false;
  std::size_t bytes = 0;
  while (!waiting_.empty() && bytes < kSliceBytes) bytes += send_next();
  if (waiting_.empty()) return;
  slice_posted_ = true;
  const auto executor = connection_->executor();
  PageTurns::of(executor).wait(executor, [self = shared_from_this()] { self->send_slice(); });
}

std::size_t ClientOutput::send_next() {
  auto& first = waiting_.front();
  if (auto* page = std::get_if<Page>(&first); page != nullptr && page->sent < page->events.size()) {
    const auto live = std::move(page->events[page->sent++]);
    return send(net::make_frame(net::WsOpcode::text, nostr::event_message(page->sub, live->event->json())));
  }
  const auto last = std::move(first);
  waiting_.pop_front();
  if (const auto* frame = std::get_if<net::FramePtr>(&last)) return send(*frame);
  const auto bytes = send(net::make_frame(net::WsOpcode::text, std::get<Page>(last).eose));
  page_sent(std::get<Page>(last).bytes);
  return bytes;
}

std::size_t ClientOutput::send(const net::FramePtr& frame) {
  connection_->send(frame);
  return frame->payload().size();
}

void ClientOutput::page_sent(std::size_t bytes) {
  const auto queued = connection_->queued_bytes();
  if (queued == 0) {
    held_.give_back(bytes);
  } else {
    leaving_.push_back({written_ + queued, bytes});
  }
  if (queued < kPageRoomBytes) return on_page_done_();
  room_at_.push_back(written_ + queued - kPageRoomBytes);
}

// By the page's own bytes: where live events keep coming, the queue as a whole may never get short.
void ClientOutput::written(std::size_t bytes) {
  written_ += bytes;
  for (; !leaving_.empty() && leaving_.front().at <= written_; leaving_.pop_front())
    held_.give_back(leaving_.front().bytes);
  for (; !room_at_.empty() && room_at_.front() <= written_; room_at_.pop_front()) on_page_done_();
}

}  // namespace todoke::relay
