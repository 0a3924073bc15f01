#include "harness/pg_proxy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "harness/await.hpp"
#include "net/socket.hpp"

namespace todoke::test {
namespace {

constexpr const char* kSocketName = "/.s.PGSQL.5432";
constexpr int kBacklog = 64;
constexpr int kTickMs = 20;  // how soon a thread sees that it should end

sockaddr_un address_of(const std::string& folder) {
  const auto path = folder + kSocketName;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("the path of a socket is too long");
  path.copy(address.sun_path, path.size());
  return address;
}

Fd new_socket() {
  return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

struct PgProxy::State {
  struct Link {
    Fd client;
    Fd server;
    bool held = false;
    std::atomic<bool> cut = false;
    bool ended = false;
    std::thread thread;
  };

  explicit State(std::string upstream) : server_folder(std::move(upstream)) {
    std::string pattern = "/tmp/todoke_proxy_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for the proxy");
    // For nodes, too, that root has started and that have become another user.
    if (::chmod(pattern.c_str(), 0711) != 0) throw std::runtime_error("chmod of the proxy's folder");
    folder = pattern;
    const auto address = address_of(folder);
    if (::bind(listener.get(), generic(address), sizeof address) != 0 ||
        ::listen(listener.get(), kBacklog) != 0) {
      throw std::runtime_error("the proxy can't listen");
    }
    if (::chmod(static_cast<const char*>(address.sun_path), 0777) != 0)
      throw std::runtime_error("chmod of the proxy");
    acceptor = std::thread([this] { accept_all(); });
  }

  ~State() {
    stopping = true;
    acceptor.join();
    for (auto& link : links) link.thread.join();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void accept_all() {
    while (!stopping) {
      pollfd waiting{listener.get(), POLLIN, 0};
      if (::poll(&waiting, 1, kTickMs) <= 0) continue;
      Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      auto server = new_socket();
      const auto address = address_of(server_folder);
      if (!reachable || ::connect(server.get(), generic(address), sizeof address) != 0) continue;
      const std::lock_guard lock(mutex);
      if (!reachable) continue;
      auto& link = links.emplace_back();
      link.client = std::move(client);
      link.server = std::move(server);
      link.thread = std::thread([this, &link] { carry(link); });
    }
  }

  void carry(Link& link) {
    std::array<pollfd, 2> both{{{link.client.get(), POLLIN, 0}, {link.server.get(), POLLIN, 0}}};
    while (!stopping && !link.cut) {
      if (::poll(both.data(), both.size(), kTickMs) <= 0) continue;
      if (both[0].revents != 0 && !to_server(link)) break;
      if (both[1].revents != 0 && !to_client(link)) break;
    }
    link.client = Fd();
    link.server = Fd();
    const std::lock_guard lock(mutex);
    link.ended = true;
    changed.notify_all();
  }

  bool to_server(Link& link) {
    std::array<char, 64 * 1024> buffer;
    const auto n = ::recv(link.client.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    {
      const std::lock_guard lock(mutex);
      if (!trigger.empty() && bytes.find(trigger) != std::string_view::npos) {
        link.held = true;
        trigger.clear();
        changed.notify_all();
      }
    }
    return send_all(link.server.get(), bytes);
  }

  static bool to_client(Link& link) {
    std::array<char, 64 * 1024> buffer;
    const auto n = ::recv(link.server.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    return link.held || send_all(link.client.get(), {buffer.data(), static_cast<std::size_t>(n)});
  }

  const std::string server_folder;
  std::string folder;
  Fd listener = new_socket();
  std::atomic<bool> stopping = false;
  std::atomic<bool> reachable = true;
  std::mutex mutex;
  std::condition_variable changed;
  std::string trigger;
  std::list<Link> links;
  std::thread acceptor;
};

PgProxy::PgProxy(const std::string& server_folder) : state_(std::make_unique<State>(server_folder)) {}
PgProxy::~PgProxy() = default;

std::string PgProxy::folder() const {
  return state_->folder;
}

void PgProxy::hold_answers_after(const std::string& text) {
  const std::lock_guard lock(state_->mutex);
  state_->trigger = text;
}

void PgProxy::await_held() {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, kPatience, [this] { return state_->trigger.empty(); })) {
    throw std::runtime_error("no client sent what was waited for");
  }
}

void PgProxy::cut() {
  std::unique_lock lock(state_->mutex);
  for (auto& link : state_->links) link.cut = true;
  const auto all_ended = [this] {
    return std::all_of(state_->links.begin(), state_->links.end(),
                       [](const auto& link) { return !link.cut || link.ended; });
  };
  if (!state_->changed.wait_for(lock, kPatience, all_ended))
    throw std::runtime_error("a connection does not end");
}

void PgProxy::set_reachable(bool on) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->reachable = on;
  }
  if (!on) cut();
}

}  // namespace todoke::test
