// An echo server for clients that others wrote. Prints its port, then serves until its standard input ends.
// `close CODE` as a text message makes it close with that code.
#include <charconv>
#include <iostream>

#include "echo_server.hpp"

namespace todoke::net {
namespace {

class Echo : public EchoHandler {
 public:
  void on_message(WsOpcode opcode, std::string_view payload) override {
    constexpr std::string_view command = "close ";
    std::uint16_t code = 0;
    if (payload.starts_with(command)) {
      std::from_chars(payload.data() + command.size(), payload.data() + payload.size(), code);
      connection_->close(code, "as asked");
    } else {
      EchoHandler::on_message(opcode, payload);
    }
  }
};

}  // namespace
}  // namespace todoke::net

int main() {
  todoke::net::WsOptions options;
  options.message_bytes_max = 4 * 1024 * 1024;
  options.queue_bytes_max = 64 * 1024 * 1024;
  const todoke::net::WsTestServer server(options, [] { return std::make_shared<todoke::net::Echo>(); });
  std::cout << server.port() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
}
