// The release binary as a child process: a private data folder, any free ports, output that can be waited
// for.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "harness/await.hpp"

namespace todoke::test {

// A folder under /tmp, removed with everything in it at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Exit {
  int code = -1;    // when it ended by itself
  int signal = 0;   // when a signal ended it
  std::string out;  // stdout
  std::string err;  // stderr
};

class ChildProcess {
 public:
  // `user` (when we are root): the user to run it as.
  ChildProcess(const std::vector<std::string>& command, const std::vector<std::string>& extra_environment,
               const std::string& user = {});
  ~ChildProcess();  // kills it when it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const;
  void kill(int signal) const;
  // Waits until stdout or stderr contains `text`. Throws with all output when the process ends or patience
  // does.
  void wait_for_output(const std::string& text);
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  Exit wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs a command to its end.
Exit run_command(const std::vector<std::string>& command,
                 const std::vector<std::string>& extra_environment = {});

// Path of the binary under test: the one of this build, or TODOKE_BINARY.
std::string todoke_binary();

// `todoke up` on ports of the system's choice.
class TodokeUp {
 public:
  explicit TodokeUp(const std::filesystem::path& data_dir, std::vector<std::string> more_arguments = {},
                    std::vector<std::string> extra_environment = {}, const std::string& user = {});

  void wait_ready() { process_.wait_for_output("ready after"); }
  [[nodiscard]] ChildProcess& process() { return process_; }
  [[nodiscard]] std::string public_address();  // host:port
  [[nodiscard]] std::string internal_address();
  // `todoke psql` on this node's database; stdout of psql -At. Throws when psql fails.
  std::string sql(const std::string& statement);

 private:
  std::string address(const std::string& label);
  std::filesystem::path data_dir_;
  std::vector<std::string> environment_;
  ChildProcess process_;
};

// Body of a GET with curl, and its status.
struct HttpAnswer {
  int status = 0;
  std::string body;
};
HttpAnswer http_get(const std::string& url);

// Processes whose working folder is inside `folder`: the backends of an embedded server.
std::vector<pid_t> processes_in(const std::filesystem::path& folder);
// Waits until none is left.
void wait_until_none_in(const std::filesystem::path& folder);

}  // namespace todoke::test
