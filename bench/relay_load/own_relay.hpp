// A todoke of the load generator's own: fresh data, free ports, no rate limits; stopped and removed at the
// end.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace todoke::test {
class TodokeUp;
}

namespace todoke::bench {

class OwnRelay {
 public:
  // Returns when it is ready. Throws with its output when it does not become so.
  OwnRelay();
  ~OwnRelay();
  OwnRelay(const OwnRelay&) = delete;
  OwnRelay& operator=(const OwnRelay&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  void stop();

  std::filesystem::path folder_;
  std::unique_ptr<test::TodokeUp> process_;
  std::string url_;
};

}  // namespace todoke::bench
