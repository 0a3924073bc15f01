#include "log/rig.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <future>
#include <iostream>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/nostr_client.hpp"

namespace todoke::test {
namespace {

constexpr std::uint16_t kPortFirst = 20'000;
constexpr std::uint16_t kPortLast = 29'999;
constexpr int kPortTries = 1'000;
constexpr nostr::Kind kDeletion = 5;
constexpr nostr::Kind kReplaceable = 10'002;

bool can_bind(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

void expect_stored(const OkAnswer& answer) {
  if (!answer.accepted) throw std::runtime_error("not stored: " + answer.text);
}

void publish_some(const std::string& url, std::size_t notes) {
  NostrClient client(url);
  const auto key = nostr::SecretKey::generate();
  std::string first;
  for (std::size_t i = 0; i < notes; ++i) {
    const auto event = note(key, fmt::format("note {}", i));
    if (first.empty()) first = event.id().hex();
    expect_stored(client.publish(event));
  }
  expect_stored(client.publish(note(key, "", {{"e", first}, {"t", "kukuri:global"}}, kDeletion)));
  for (int version = 0; version < 2; ++version) {
    expect_stored(
        client.publish(note(key, "", {{"t", "kukuri:global"}}, kReplaceable, unix_now() - 10 + version)));
  }
  client.close();
}

}  // namespace

std::uint16_t free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> any(kPortFirst, kPortLast);
  for (int i = 0; i < kPortTries; ++i) {
    const auto port = static_cast<std::uint16_t>(any(random));
    if (can_bind(port)) return port;
  }
  throw std::runtime_error("no port is free");
}

std::string refusal(const std::string& url) {
  try {
    const SqlSession session(url);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

LogNode::LogNode(Tcp tcp) {
  start(tcp);
}

LogNode::~LogNode() {
  node_.reset();
  try {
    wait_until_none_in(folder_.path());
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << '\n';
  }
}

void LogNode::start(Tcp tcp) {
  settings_ = {"--data_dir", folder_.path().string()};
  if (tcp != Tcp::closed) {
    port_ = free_port();
    settings_.insert(settings_.end(), {"--log.listen", fmt::format("127.0.0.1:{}", port_)});
  }
  if (tcp == Tcp::tls) {
    certificate_ = std::make_unique<net::test::TestCertificate>();
    settings_.insert(settings_.end(),
                     {"--log.tls_cert", certificate_->cert(), "--log.tls_key", certificate_->key()});
  }
  auto more = settings_;
  more.erase(more.begin(), more.begin() + 2);
  more.insert(more.end(), {"--limits.rates", "off"});
  node_ = std::make_unique<TodokeUp>(folder_.path(), more);
  node_->wait_ready();
}

void LogNode::start_roles(const std::string& roles) {
  settings_ = {"--data_dir", folder_.path().string()};
  node_ = std::make_unique<TodokeRun>(roles, folder_.path());
  node_->wait_ready();
}

void LogNode::stop() {
  const auto exit = node_->stop();
  if (exit.code != 0) throw std::runtime_error("the node did not stop well: " + exit.err);
  node_.reset();
}

Exit LogNode::todoke(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), todoke_binary());
  arguments.insert(arguments.end(), settings_.begin(), settings_.end());
  return run_command(arguments);
}

std::string LogNode::add(const std::string& name, const std::vector<std::string>& more) const {
  std::vector<std::string> arguments{"consumers", "add", name};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto exit = todoke(arguments);
  if (exit.code != 0) throw std::runtime_error("consumers add: " + exit.err);
  return exit.out.substr(0, exit.out.find('\n'));
}

void LogNode::publish(std::size_t clients, std::size_t notes_each) {
  const auto url = "ws://" + node_->public_address() + "/relay";
  std::vector<std::future<void>> all;
  for (std::size_t i = 0; i < clients; ++i) {
    all.push_back(std::async(std::launch::async, [&url, notes_each] { publish_some(url, notes_each); }));
  }
  for (auto& each : all) each.get();
}

void LogNode::append_by_sql(std::size_t rows) {
  sql(fmt::format(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 'upsert', md5(i::text || clock_timestamp()), 'kukuri:global', 1, 1700000000, now() "
      "FROM generate_series(1, {}) i",
      rows));
}

std::vector<std::string> LogNode::log() {
  return lines_of(
      sql("SELECT concat_ws(' ', seq, op, event_id, topic_id) FROM cn_relay.events_outbox ORDER BY seq"));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string with_user(const std::string& url, const std::string& user, const std::string& password) {
  return fmt::format("postgresql://{}:{}{}", user, password, url.substr(url.find('@')));
}

}  // namespace todoke::test
