#include "nodes.hpp"

#include <csignal>
#include <thread>

#include <fmt/format.h>

namespace todoke::test {
namespace {

constexpr std::size_t kLogShown = 2'000;

}  // namespace

Nodes::Nodes(const std::string& socket_folder, std::string database, Environment environment)
    : database_(std::move(database)), environment_(std::move(environment)), slots_(kNodes) {
  for (auto& slot : slots_) slot.proxy = std::make_unique<PgProxy>(socket_folder);
}

std::optional<std::size_t> Nodes::by_session(const std::string& name) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (name == session_name(i)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Nodes::by_worker(const std::string& locked_by) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].node && locked_by.starts_with(slots_[i].node->worker())) return i;
  }
  return std::nullopt;
}

void Nodes::start(std::size_t index) {
  auto& slot = slots_[index];
  if (slot.node) return;
  const auto url = fmt::format("host={} user=todoke dbname={} application_name={}", slot.proxy->folder(),
                               database_, session_name(index));
  auto environment = environment_;
  if (clock_jumps(index)) environment.emplace_back("LD_PRELOAD=" TODOKE_SOAK_CLOCK);
  slot.node = std::make_unique<OrderNode>(url, environment);
  identities_.push_back({session_name(index), slot.node->worker(), clock_jumps(index)});
  ++starts_;
}

void Nodes::await(std::size_t index) {
  auto& slot = slots_[index];
  if (slot.is_ready) return;
  slot.node->wait_ready();
  const auto url = slot.node->public_url();
  slot.is_ready = true;
  ports_[index] = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

void Nodes::look_for_surprises(std::size_t index) {
  auto& slot = slots_[index];
  if (!slot.node || !slot.node->process().has_ended()) return;
  const auto exit = slot.node->process().wait();
  const auto from = exit.err.size() > kLogShown ? exit.err.size() - kLogShown : 0;
  surprises_ += fmt::format("node {} ended by itself, code {}, signal {}:\n{}\n", index, exit.code,
                            exit.signal, exit.err.substr(from));
  ports_[index] = 0;
  slot.node.reset();
  slot.is_ready = false;
  slot.frozen_until.reset();
}

void Nodes::kill(std::size_t index) {
  look_for_surprises(index);
  auto& slot = slots_[index];
  if (!slot.node) return;
  ports_[index] = 0;
  slot.node.reset();
  slot.is_ready = false;
  slot.frozen_until.reset();
}

void Nodes::stop(std::size_t index) {
  look_for_surprises(index);
  auto& slot = slots_[index];
  if (!slot.node) return;
  ports_[index] = 0;
  resume(index);
  slot.node->stop();
  slot.node.reset();
  slot.is_ready = false;
}

void Nodes::freeze(std::size_t index, std::chrono::milliseconds time) {
  auto& slot = slots_[index];
  if (!slot.is_ready || slot.frozen_until) return;
  ports_[index] = 0;
  slot.node->process().kill(SIGSTOP);
  slot.frozen_until = std::chrono::steady_clock::now() + time;
}

void Nodes::resume(std::size_t index) {
  auto& slot = slots_[index];
  if (!slot.frozen_until) return;
  slot.frozen_until.reset();
  slot.node->process().kill(SIGCONT);
  slot.is_ready = false;
  await(index);
}

void Nodes::resume_due() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].frozen_until && std::chrono::steady_clock::now() >= *slots_[i].frozen_until) resume(i);
  }
}

void Nodes::thaw() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].frozen_until) continue;
    std::this_thread::sleep_until(*slots_[i].frozen_until);
    resume(i);
  }
}

void Nodes::revive() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    look_for_surprises(i);
    start(i);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!is_frozen(i)) await(i);
  }
}

}  // namespace todoke::test
