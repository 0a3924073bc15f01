// Stands between a program and the test's Postgres on a Unix socket and fails as a network does: answers that
// never come, connections that end, a server that can't be reached.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace todoke::test {

class PgProxy {
 public:
  // `server_folder` is where the socket of the server stands.
  explicit PgProxy(const std::string& server_folder);
  ~PgProxy();
  PgProxy(const PgProxy&) = delete;
  PgProxy& operator=(const PgProxy&) = delete;

  // The folder to connect to instead.
  [[nodiscard]] std::string folder() const;

  // From the next message of a client that holds `text` on, that connection gets no answers; what it sends
  // still arrives. One connection at a time; await_held() waits for it.
  void hold_answers_after(const std::string& text);
  void await_held();
  // Ends all connections, and returns when they have ended. New ones are taken.
  void cut();
  // New connections are closed at once, and with `off` the old ones too.
  void set_reachable(bool on);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace todoke::test
