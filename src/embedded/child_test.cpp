#include "embedded/child.hpp"

#include <array>
#include <fcntl.h>
#include <signal.h>
#include <stdexcept>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// What a program writes when it runs as a child of ours.
std::string output_of(std::vector<std::string> argv, std::vector<int> folders = {}) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const auto pid =
      spawn_program({.argv = std::move(argv), .output_fd = writing.get(), .folders = std::move(folders)});
  writing.reset();
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = ::read(reading.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(pid, nullptr, 0);
  return text;
}

std::string output_of_script(const std::string& script, std::vector<int> folders = {}) {
  return output_of({"/bin/sh", "-c", script}, std::move(folders));
}

TEST(Child, LeadsItsOwnSessionInTheRootFolder) {
  // The sixth field of stat is the session.
  EXPECT_EQ(output_of_script(
                "pwd; read -r a b c d e session rest < /proc/$$/stat; test $session = $$ && echo leads"),
            "/\nleads\n");
}

TEST(Child, HandlesSignalsAsIsUsual) {
  ::signal(SIGTERM, SIG_IGN);
  const auto shown = output_of_script("grep -E 'SigIgn|SigBlk' /proc/self/status");
  ::signal(SIGTERM, SIG_DFL);
  EXPECT_THAT(shown, HasSubstr("SigBlk:\t0000000000000000\n"));
  // Signals 32 and 33 belong to the C library, which lets nobody set them: they stay as whoever started us
  // left them.
  constexpr unsigned long long kReserved = 0x180000000ULL;
  EXPECT_EQ(std::stoull(shown.substr(shown.find("SigIgn:") + 7), nullptr, 16) & ~kReserved, 0ULL);
}

TEST(Child, HasNoDescriptorsButThoseWanted) {
  const Fd secret(::open("/etc/passwd", O_RDONLY));
  const Fd low(::open("/usr/share", O_PATH | O_CLOEXEC));
  const Fd wanted(::fcntl(low.get(), F_DUPFD_CLOEXEC, kParentFolderFdMin));
  const auto shown = output_of_script("readlink /proc/$$/fd/3; ls /proc/$$/fd", {wanted.get()});
  EXPECT_THAT(shown, EndsWith("/usr/share\n0\n1\n2\n3\n"));
}

TEST(Child, SeesNoVariablesOfPostgresAndNoSecrets) {
  ::setenv("PGDATA", "/elsewhere", 1);
  ::setenv("TODOKE_SECRET", "s3cret", 1);
  const auto shown = output_of({"/usr/bin/env"});
  EXPECT_THAT(shown, Not(HasSubstr("PGDATA")));
  EXPECT_THAT(shown, Not(HasSubstr("s3cret")));
  EXPECT_THAT(shown, HasSubstr("PATH="));
}

TEST(Child, AMissingProgramIsNamed) {
  EXPECT_THAT(output_of({"/nonexistent/program"}),
              AllOf(HasSubstr("/nonexistent/program"), HasSubstr("No such file")));
}

TEST(Child, RootGivesUpItsRightsAndNobodyElseBecomesAnother) {
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  constexpr Identity kNobody{65534, 65534};
  const auto runs = [&](std::vector<std::string> argv) {
    return run_program({.argv = std::move(argv), .identity = kNobody, .output_fd = null.get()});
  };
  EXPECT_EQ(runs({"/bin/sh", "-c", "test $(id -u):$(id -g):$(id -G) = 65534:65534:65534"}), ::geteuid() == 0);
  EXPECT_FALSE(runs({"/usr/bin/test", "-r", "/etc/shadow"}));
}

}  // namespace
}  // namespace todoke::embedded
