// One WebSocket connection, as server or as client: reads through WsReceiver, writes through one output
// queue.
//
//   open --close() or a failure--> closing --close frames of both sides, or time is up--> over
//
// Reading is one coroutine (run). Writing is one that lives only while there is something to write. One
// watchdog serves all the times: silence of the peer, a write, the closing handshake. The largest part of an
// idle connection are frames of coroutines, about 5 KiB; its read buffer of 256 bytes grows to 16 KiB while
// the peer fills it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/watchdog.hpp"
#include "net/websocket.hpp"
#include "net/ws_receiver.hpp"

namespace todoke::net {

struct WsSessionSetup {
  WsRole role = WsRole::server;
  std::shared_ptr<Transport> transport;
  std::string buffered;  // read beyond the handshake
  WsAgreement agreement;
  std::shared_ptr<WsHandler> handler;
  WsOptions options;
  WsMetrics* metrics = nullptr;
  WsMemory unfinished;
};

class WsSession final : public WsConnection, public std::enable_shared_from_this<WsSession> {
 public:
  explicit WsSession(WsSessionSetup setup);
  ~WsSession() override;

  // Once, with a pointer to itself that lives as long as it runs. Returns when the connection is over, with
  // nothing left running and the transport closed.
  Task<void> run(std::shared_ptr<WsSession> self);

  void send(FramePtr frame) override;
  void close(std::uint16_t code, std::string_view reason) override;
  void drain() override;
  void pause_reading() override { ++pauses_; }
  void resume_reading() override;
  [[nodiscard]] bool peer_has_ended() const override { return broken_ || transport_->peer_has_ended(); }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued_bytes_; }
  [[nodiscard]] bool compressed() const override { return deflate_; }
  [[nodiscard]] Executor executor() const override { return executor_; }

  [[nodiscard]] bool closing() const { return closing_ || unheard_ || broken_; }
  // At most 125 bytes. Ignored once the connection is closing.
  void ping(std::string_view payload);
  // At once and without a close frame.
  void cut(std::string_view why);

 private:
  struct Outgoing {
    std::shared_ptr<const void> owner;  // a shared frame, or the masked copy of a client
    std::string_view bytes;
  };

  // Reading.
  Task<void> read_until_end();
  Task<void> wait_while_blocked();
  Task<void> linger();
  std::span<char> read_buffer();
  void note_read(bool filled);
  void note_starved();
  void note_held();
  std::function<void()> end_by_post();
  void give_way();
  void tell_drained();
  void handle_event(const WsEvent& event);
  [[nodiscard]] bool reading_blocked() const;

  // Writing (ws_session_write.cpp).
  void enqueue_control(WsControl opcode, std::string_view payload);
  void schedule_flush();
  void flush_ended(const std::exception_ptr& error);
  static Task<void> write_queued(std::shared_ptr<WsSession> self);
  std::size_t collect(std::array<std::string_view, kWritePartsMax>& parts);
  void written();
  void drop_unsent();
  void write_failed(std::string_view why);

  // The end.
  void begin_close(std::uint16_t code, std::string_view reason);
  void queue_close_frame(std::uint16_t code, std::string_view reason);
  void give_up_writing();
  void report_written();
  void report_end();
  Task<void> wait_for_change();
  void changed();
  template <class F>
  void call_handler(std::string_view what, F&& call);

  // Time.
  void on_time();
  void arm();
  [[nodiscard]] SteadyTime nearest_deadline() const;

  WsRole role_;
  bool deflate_;
  std::shared_ptr<Transport> transport_;
  Executor executor_;
  std::shared_ptr<WsHandler> handler_;
  WsOptions options_;
  WsMetrics* metrics_;
  std::string buffered_;
  WsReceiver receiver_;
  WsMemory unfinished_;
  std::unique_ptr<ClientMemory::Holder> held_;  // while part of a message is kept
  Watchdog watchdog_;
  std::unique_ptr<Signal> change_;  // made when something waits for the first time

  // An idle connection has nothing but this. What is longer takes another read, into the large buffer.
  std::array<char, 256> small_buffer_;
  std::unique_ptr<char[]> large_buffer_;  // only while the peer sends fast
  bool read_filled_ = false;
  int pauses_ = 0;
  bool waits_for_peer_ = false;  // everything that was read has been handed over
  bool draining_ = false;
  bool drained_ = false;     // and the handler knows it
  bool ping_waits_ = false;  // a ping was sent and nothing was received since

  std::vector<Outgoing> queue_;
  std::vector<Outgoing> batch_;  // taken from the queue as a whole, written in pieces
  std::size_t batch_at_ = 0;
  std::size_t batch_in_flight_ = 0;  // of the write under way: frames from batch_at_ on
  std::string control_;              // whole ping and pong frames; they go before queued data
  std::string control_in_flight_;
  std::string close_frame_;  // goes after queued data
  bool close_in_flight_ = false;
  std::size_t queued_bytes_ = 0;
  std::size_t bytes_in_flight_ = 0;
  bool flushing_ = false;

  bool closing_ = false;  // a close frame was queued
  bool unheard_ = false;  // writing has failed: what the peer sent before is still read and handled
  bool broken_ = false;   // the transport can't be used any more
  bool end_reported_ = false;
  std::uint16_t end_code_ = 1006;
  std::string end_reason_;

  SteadyTime received_at_;
  SteadyTime next_ping_;                        // when to look whether one is due
  std::optional<SteadyTime> message_deadline_;  // inside a message
  std::optional<SteadyTime> write_deadline_;
  std::optional<SteadyTime> close_deadline_;
};

}  // namespace todoke::net
