#include "pg/process_fork.hpp"

#include <array>
#include <fcntl.h>
#include <signal.h>
#include <stdexcept>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pg/process_fd.hpp"

namespace todoke::pg {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a shell command writes when it runs as a child of ours.
std::string output_of(const std::string& script, std::vector<int> keep_fds = {}) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.environment = child_environment();
  spec.output_fd = writing.get();
  spec.keep_fds = std::move(keep_fds);
  const auto pid = fork_and_exec(spec);
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

TEST(Fork, TheChildLeadsItsOwnSessionInTheRootFolderWithATightUmask) {
  // The sixth field of stat is the session.
  EXPECT_EQ(
      output_of(
          "umask; pwd; read -r a b c d e session rest < /proc/$$/stat; test $session = $$ && echo leads"),
      "0077\n/\nleads\n");
}

TEST(Fork, TheChildIgnoresABrokenPipeAndHasDefaultsOtherwise) {
  ::signal(SIGTERM, SIG_IGN);
  const auto shown = output_of("grep -E 'SigIgn|SigBlk' /proc/self/status");
  ::signal(SIGTERM, SIG_DFL);
  EXPECT_THAT(shown, HasSubstr("SigBlk:\t0000000000000000\n"));
  // Signals 32 and 33 belong to the C library, which lets nobody set them: they stay as whoever started us
  // left them.
  constexpr unsigned long long kReserved = 0x180000000ULL;
  const auto ignored = std::stoull(shown.substr(shown.find("SigIgn:") + 7), nullptr, 16) & ~kReserved;
  EXPECT_EQ(ignored, 1ULL << (SIGPIPE - 1));
}

TEST(Fork, TheChildHasNoDescriptorsButThoseWanted) {
  const Fd secret(::open("/etc/passwd", O_RDONLY));
  const Fd wanted(::open("/etc/group", O_RDONLY | O_CLOEXEC));
  const auto shown = output_of("for f in /proc/$$/fd/*; do readlink $f; done", {wanted.get()});
  EXPECT_THAT(shown, HasSubstr("/etc/group"));
  EXPECT_THAT(shown, Not(HasSubstr("/etc/passwd")));
  EXPECT_THAT(shown, Not(HasSubstr("socket:")));
  EXPECT_THAT(shown, Not(HasSubstr("eventpoll")));
}

TEST(Fork, TheChildSeesNoVariablesOfPostgresAndNoSecrets) {
  ::setenv("PGDATA", "/elsewhere", 1);
  ::setenv("TODOKE_SECRET", "s3cret", 1);
  const auto shown = output_of("env");
  EXPECT_THAT(shown, Not(HasSubstr("PGDATA")));
  EXPECT_THAT(shown, Not(HasSubstr("s3cret")));
  EXPECT_THAT(shown, HasSubstr("PATH="));
}

TEST(Fork, AMissingProgramIsAnErrorThatNamesIt) {
  ProcessSpec spec;
  spec.argv = {"/nonexistent/program"};
  spec.output_fd = STDERR_FILENO;
  try {
    fork_and_exec(spec);
    FAIL() << "expected an exception";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/program"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST(Fork, AFolderThatIsNotThereCannotBeReached) {
  EXPECT_TRUE(can_reach(std::nullopt, {"/", "/tmp"}));
  EXPECT_FALSE(can_reach(std::nullopt, {"/tmp", "/nonexistent"}));
}

}  // namespace
}  // namespace todoke::pg
