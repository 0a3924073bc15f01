#include "node.hpp"

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <stdexcept>
#include <stdlib.h>
#include <sys/stat.h>
#include <utility>

#include "embedded/leftovers.hpp"
#include "harness/sql_session.hpp"

namespace todoke::embedded::tests {
namespace {

constexpr std::chrono::seconds kDeadline(90);
constexpr std::chrono::milliseconds kStep(10);

// A thread of run_blocking may still touch the context a moment after the coroutine went on, so contexts stay
// until the process ends. The list is older than those threads: it is first used before any of them starts.
boost::asio::io_context& lasting_context() {
  static std::deque<boost::asio::io_context> contexts;
  return contexts.emplace_back();
}

}  // namespace

TempFolder::TempFolder(mode_t mode) {
  std::string pattern = "/tmp/todoke-embedded-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
  if (::chmod(path_.c_str(), mode) != 0) throw std::runtime_error("chmod");
}

TempFolder::~TempFolder() {
  for (const auto pid : processes_of_cluster(cluster())) signal_cluster_process(pid, cluster(), SIGKILL);
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Node::Node(Options config)
    : context_(lasting_context()),
      service_(std::make_unique<Postgres>(context_.get_executor(), std::move(config))) {}

Node::~Node() {
  if (!running_) return;
  service_->stop();
  end();
}

void Node::begin(Task<void> work) {
  running_ = true;
  error_ = nullptr;
  spawn(context_.get_executor(), std::move(work), [this](std::exception_ptr error) {
    running_ = false;
    error_ = std::move(error);
  });
}

void Node::begin_start() {
  begin(service_->start());
}
void Node::begin_run() {
  begin(service_->run());
}

std::exception_ptr Node::end() {
  until([this] { return !running_; });
  return error_;
}

void Node::start() {
  begin_start();
  if (const auto error = end()) std::rethrow_exception(error);
}

void Node::serve() {
  start();
  begin_run();
}

void Node::stop_well() {
  service_->stop();
  if (const auto error = end()) std::rethrow_exception(error);
}

void Node::until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited in vain");
    context_.restart();
    context_.run_one_for(kStep);
  }
}

std::string Node::sql(const std::string& statement) {
  return run_sql(service_->connection_string(), statement);
}

std::string run_sql(const std::string& connection_string, const std::string& statement) {
  const auto rows = test::SqlSession(connection_string).run(statement);
  return rows.empty() ? std::string() : rows.front();
}

bool has_half_made(const std::string& data_dir) {
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir, missing)) {
    if (entry.path().filename().string().starts_with("postgres.init-")) return true;
  }
  return false;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream stream(path);
  stream << content;
  if (!stream.flush()) throw std::runtime_error("can't write " + path);
}

}  // namespace todoke::embedded::tests
