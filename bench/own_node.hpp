// A todoke of a benchmark's own: fresh data, free ports, no rate limits unless a flag says so; stopped and
// removed at the end.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace todoke::test {
class TodokeUp;
}

namespace todoke::bench {

class OwnNode {
 public:
  // Returns when it is ready. Throws with its output when it does not become so.
  explicit OwnNode(const std::vector<std::string>& flags = {});
  ~OwnNode();
  OwnNode(const OwnNode&) = delete;
  OwnNode& operator=(const OwnNode&) = delete;

  // host:port of the public listener.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::string internal_address() const;
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] std::filesystem::path data_dir() const;
  // How libpq reaches its database.
  [[nodiscard]] std::string database() const;
  // A statement on its database.
  void sql(const std::string& statement);

 private:
  void stop();

  std::filesystem::path folder_;
  std::unique_ptr<test::TodokeUp> process_;
  std::string address_;
};

}  // namespace todoke::bench
