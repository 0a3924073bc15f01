#include "harness/nostr_client.hpp"

#include <deque>
#include <regex>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace todoke::test {
namespace {

// Between the first pair of quotes after `from`.
std::string quoted_after(const std::string& text, std::size_t from) {
  const auto begin = text.find('"', from);
  const auto end = text.find('"', begin + 1);
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("no text in " + text);
  return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

struct NostrClient::State {
  asio::io_context io;
  std::shared_ptr<net::WsClient> client;
  std::deque<std::string> kept;

  // Runs a coroutine to its end on this thread.
  template <class Work>
  void run(Work work) {
    std::exception_ptr failure;
    bool ended = false;
    asio::co_spawn(io, work(), [&](std::exception_ptr error) {
      failure = std::move(error);
      ended = true;
    });
    io.restart();
    while (!ended && io.run_one() > 0) {
    }
    if (failure) std::rethrow_exception(failure);
  }

  std::optional<std::string> next() {
    std::optional<std::string> message;
    run([&]() -> Task<void> {
      auto received = co_await client->receive(Deadline::after(kClientPatience));
      if (received) message = std::move(received->payload);
    });
    return message;
  }
};

std::int64_t StoredAnswer::cursor() const {
  const auto at = end.find("\"seq:");
  return at == std::string::npos ? -1 : std::stoll(end.substr(at + 5));
}

NostrClient::NostrClient(const std::string& url, net::WsClientOptions options, Greeting greeting)
    : state_(std::make_unique<State>()), url_(url) {
  state_->run([&]() -> Task<void> {
    state_->client =
        co_await net::WsClient::connect(url, std::move(options), Deadline::after(kClientPatience));
  });
  if (greeting == Greeting::challenge) await_challenge();
}

void NostrClient::await_challenge() {
  const auto first = receive();
  if (!first.starts_with("[\"AUTH\",")) throw std::runtime_error("this message is no AUTH: " + first);
  challenge_ = quoted_after(first, 7);
}

NostrClient::~NostrClient() {
  state_->client.reset();
  state_->io.restart();
  state_->io.poll();
}

void NostrClient::send(const std::string& text) {
  state_->run(
      [&]() -> Task<void> { co_await state_->client->send_text(text, Deadline::after(kClientPatience)); });
}

void NostrClient::send_binary(const std::string& bytes) {
  state_->run([&]() -> Task<void> {
    co_await state_->client->send(net::WsOpcode::binary, bytes, Deadline::after(kClientPatience));
  });
}

std::optional<std::string> NostrClient::receive_or_end() {
  if (state_->kept.empty()) return state_->next();
  auto message = std::move(state_->kept.front());
  state_->kept.pop_front();
  return message;
}

std::string NostrClient::receive() {
  auto message = receive_or_end();
  if (!message) throw std::runtime_error("the relay has closed the connection");
  return std::move(*message);
}

std::string NostrClient::receive(std::string_view prefix) {
  auto& kept = state_->kept;
  for (auto at = kept.begin(); at != kept.end(); ++at) {
    if (!at->starts_with(prefix)) continue;
    auto message = std::move(*at);
    kept.erase(at);
    return message;
  }
  for (;;) {
    auto message = state_->next();
    if (!message)
      throw std::runtime_error("the relay has closed the connection before " + std::string(prefix));
    if (message->starts_with(prefix)) return std::move(*message);
    kept.push_back(std::move(*message));
  }
}

std::vector<std::string> NostrClient::drain() {
  static constexpr std::string_view kEnd = R"(["CLOSED","drain-marker",)";
  // No relay knows this key.
  send(R"(["REQ","drain-marker",{"no such key":1}])");
  std::vector<std::string> messages;
  for (;;) {
    auto message = receive();
    if (message.starts_with(kEnd)) return messages;
    messages.push_back(std::move(message));
  }
}

OkAnswer parse_ok(const std::string& message) {
  static const std::regex kForm(R"re(\["OK","([^"]*)",(true|false),"([^"]*)"\])re");
  std::smatch parts;
  if (!std::regex_match(message, parts, kForm)) throw std::runtime_error("no OK: " + message);
  return {parts[1], parts[2] == "true", parts[3]};
}

std::string id_in(const std::string& event_json) {
  const auto at = event_json.find("\"id\":");
  if (at == std::string::npos) throw std::runtime_error("no id in " + event_json);
  return quoted_after(event_json, at + 5);
}

OkAnswer NostrClient::publish(const nostr::Event& event) {
  return publish_json(std::string(event.json()));
}

OkAnswer NostrClient::publish_json(const std::string& event_json) {
  send("[\"EVENT\"," + event_json + "]");
  return parse_ok(receive("[\"OK\","));
}

StoredAnswer NostrClient::request(const std::string& sub, const std::string& filters) {
  send("[\"REQ\",\"" + sub + "\"," + filters + "]");
  const auto event = "[\"EVENT\",\"" + sub + "\",";
  const auto eose = "[\"EOSE\",\"" + sub + "\"";
  const auto closed = "[\"CLOSED\",\"" + sub + "\",";
  StoredAnswer answer;
  std::deque<std::string> others;
  for (;;) {
    auto message = receive();
    if (message.starts_with(event)) {
      answer.events.push_back(message.substr(event.size(), message.size() - event.size() - 1));
      answer.ids.push_back(id_in(answer.events.back()));
    } else if (message.starts_with(eose) || message.starts_with(closed)) {
      if (message.starts_with(closed)) answer.closed = quoted_after(message, closed.size());
      answer.end = std::move(message);
      break;
    } else {
      others.push_back(std::move(message));
    }
  }
  state_->kept.insert(state_->kept.begin(), others.begin(), others.end());
  return answer;
}

StoredAnswer NostrClient::stored(const std::string& filters) {
  // A new name each time: what was on its way to the last one is not taken for an answer to this one.
  const auto sub = "stored-" + std::to_string(++stored_requests_);
  auto answer = request(sub, filters);
  if (answer.closed.empty()) send("[\"CLOSE\",\"" + sub + "\"]");
  return answer;
}

std::string NostrClient::count(const std::string& sub, const std::string& filters) {
  send("[\"COUNT\",\"" + sub + "\"," + filters + "]");
  const auto counted = "[\"COUNT\",\"" + sub + "\",";
  const auto closed = "[\"CLOSED\",\"" + sub + "\",";
  std::deque<std::string> others;
  auto message = receive();
  while (!message.starts_with(counted) && !message.starts_with(closed)) {
    others.push_back(std::move(message));
    message = receive();
  }
  state_->kept.insert(state_->kept.begin(), others.begin(), others.end());
  return message;
}

std::string NostrClient::live(const std::string& sub) {
  const auto prefix = "[\"EVENT\",\"" + sub + "\",";
  const auto message = receive(prefix);
  return message.substr(prefix.size(), message.size() - prefix.size() - 1);
}

OkAnswer NostrClient::authenticate(const nostr::SecretKey& key) {
  const auto event =
      nostr::sign_event({unix_now(), nostr::kAuth, {{"relay", url_}, {"challenge", challenge_}}, ""}, key);
  send("[\"AUTH\"," + std::string(event.json()) + "]");
  return parse_ok(receive("[\"OK\","));
}

void NostrClient::close() {
  state_->run(
      [&]() -> Task<void> { co_await state_->client->close(1000, "", Deadline::after(kClientPatience)); });
}

std::uint16_t NostrClient::close_code() const {
  return state_->client->close_code();
}

bool NostrClient::compressed() const {
  return state_->client->compressed();
}

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

nostr::Event note(const nostr::SecretKey& key, std::string content,
                  std::vector<std::vector<std::string>> tags, nostr::Kind kind,
                  std::optional<std::int64_t> created_at) {
  return nostr::sign_event({created_at.value_or(unix_now()), kind, std::move(tags), std::move(content)}, key);
}

}  // namespace todoke::test
