#include "own_node.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <linux/magic.h>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/todoke_process.hpp"

namespace todoke::bench {
namespace {

std::filesystem::path new_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "todoke-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + pattern);
  // The node becomes another user where root starts it.
  if (chmod(pattern.c_str(), 0711) != 0) throw std::runtime_error("chmod of " + pattern);
  struct statfs where{};
  if (statfs(pattern.c_str(), &where) == 0 && where.f_type == TMPFS_MAGIC) {
    std::fputs(fmt::format("bench: {} is in memory, so writing costs less than it would; "
                           "set TMPDIR to a folder on a disk\n",
                           pattern)
                   .c_str(),
               stderr);
  }
  return pattern;
}

}  // namespace

OwnNode::OwnNode(const std::vector<std::string>& flags) : folder_(new_folder()) {
  try {
    std::vector<std::string> arguments{"--log.level", "warning"};
    if (std::find(flags.begin(), flags.end(), "--limits.rates") == flags.end()) {
      arguments.emplace_back("--limits.rates");
      arguments.emplace_back("off");
    }
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    process_ = std::make_unique<test::TodokeUp>(folder_ / "data", arguments);
    process_->wait_ready();
    address_ = process_->public_address();
  } catch (...) {
    stop();
    throw;
  }
}

OwnNode::~OwnNode() {
  stop();
}

std::string OwnNode::internal_address() const {
  return process_->internal_address();
}

pid_t OwnNode::pid() const {
  return process_->process().pid();
}

std::filesystem::path OwnNode::data_dir() const {
  return process_->data_dir();
}

std::string OwnNode::database() const {
  return "host=" + (data_dir() / "run").string() + " dbname=todoke user=todoke";
}

void OwnNode::sql(const std::string& statement) {
  process_->sql(statement);
}

void OwnNode::stop() {
  if (process_) {
    try {
      process_->process().kill(SIGTERM);
      const auto exit = process_->process().wait();
      if (exit.code != 0)
        std::fputs(fmt::format("bench: todoke ended with {}: {}\n", exit.code, exit.err).c_str(), stderr);
    } catch (const std::exception& error) {
      std::fputs(fmt::format("bench: stopping todoke: {}\n", error.what()).c_str(), stderr);
    }
    process_.reset();
  }
  std::error_code failed;
  std::filesystem::remove_all(folder_, failed);
  if (failed)
    std::fputs(fmt::format("bench: {} is left: {}\n", folder_.string(), failed.message()).c_str(), stderr);
}

}  // namespace todoke::bench
