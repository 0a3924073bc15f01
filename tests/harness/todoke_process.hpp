// Programs as child processes, with output that can be waited for, and nodes among them (NodeProcess).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
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
  // Whether it has ended; also before anybody waits for it.
  [[nodiscard]] bool has_ended() const;
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

// A node as a process: on ports of the system's choice, with its data in `data_dir`, or, where that is empty,
// in a folder that goes with it. Killed at the end of its life when it still runs. bootstrap.enabled is off
// unless the environment says otherwise.
class NodeProcess {
 public:
  void wait_ready();
  [[nodiscard]] ChildProcess& process() { return process_; }
  [[nodiscard]] const std::filesystem::path& data_dir() const { return data_dir_; }
  // SIGTERM, and waits for the end.
  Exit stop();

  // host:port, known before the node is ready. Throws when it ends instead.
  [[nodiscard]] std::string public_address();
  [[nodiscard]] std::string internal_address();
  // Of the relay.
  [[nodiscard]] std::string url() { return "ws://" + public_address() + "/relay"; }

  // The value of a series by its whole name, with labels if it has any; 0 when there is none.
  [[nodiscard]] double metric(const std::string& series);
  void wait_for_metric(const std::string& series, double value);
  // What the internal /healthz answers.
  [[nodiscard]] std::string health();
  // `todoke psql` on this node's database; stdout of psql -At. Throws when psql fails.
  std::string sql(const std::string& statement);

 protected:
  // `command` is `up` or `run` with its options.
  NodeProcess(std::vector<std::string> command, const std::filesystem::path& data_dir,
              const std::vector<std::string>& more_arguments, std::vector<std::string> extra_environment,
              const std::string& user = {});

 private:
  void learn_addresses();
  std::unique_ptr<TempFolder> own_folder_;
  std::filesystem::path data_dir_;
  std::vector<std::string> environment_;
  std::string says_ready_;  // in its output
  ChildProcess process_;
  std::string public_address_;
  std::string internal_address_;
};

// `todoke up`.
class TodokeUp : public NodeProcess {
 public:
  explicit TodokeUp(const std::filesystem::path& data_dir,
                    const std::vector<std::string>& more_arguments = {},
                    std::vector<std::string> extra_environment = {}, const std::string& user = {})
      : NodeProcess({"up"}, data_dir, more_arguments, std::move(extra_environment), user) {}
};

// `todoke run --roles ROLES`.
class TodokeRun : public NodeProcess {
 public:
  TodokeRun(const std::string& roles, const std::filesystem::path& data_dir,
            const std::vector<std::string>& more_arguments = {},
            std::vector<std::string> extra_environment = {})
      : NodeProcess({"run", "--roles", roles}, data_dir, more_arguments, std::move(extra_environment)) {}
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
