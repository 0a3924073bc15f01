#include "embedded/backup.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "embedded/binaries.hpp"
#include "embedded/cluster.hpp"
#include "embedded/folder.hpp"
#include "embedded/machine.hpp"
#include "embedded/output.hpp"
#include "embedded/user.hpp"

namespace todoke::embedded {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "backup_manifest";
constexpr const char* kCopy = "/bin/cp";
// How often a copy is looked at: whether it has ended; and how far it is, which walks over all files.
constexpr std::chrono::milliseconds kCopyPoll(50);
constexpr std::chrono::milliseconds kCopyMeasure(2'000);
// A tool that fails says why in a line or two; the last ones.
constexpr std::size_t kComplaintBytesMax = 4 * 1024;
constexpr std::uint64_t kKibibyte = 1024;
constexpr int kMebibyteBits = 20;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

User user_of(const Options& options) {
  auto user = user_for(options.user, options.data_dir);
  if (!user) throw UserError(user.error().message);
  return *user;
}

std::string absolute_folder(const std::string& folder) {
  auto path = fs::absolute(folder).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

PostgresBinaries tools_for(const Options& options, int major) {
  if (!options.bin_dir.empty()) return {options.bin_dir, major};
  auto chosen = choose_postgres(installed_postgres(), major, options.data_dir);
  if (!chosen) throw UserError(chosen.error().message);
  return *chosen;
}

// The last lines that a tool wrote.
class Complaint {
 public:
  void add(std::string_view line) {
    text_.append(text_.empty() ? "" : "; ").append(line);
    if (text_.size() > kComplaintBytesMax) text_.erase(0, text_.size() - kComplaintBytesMax);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Runs the program to its end; throws UserError that begins with `failed` when it does not end well.
// `on_line` gets its output, on another thread; true: the line is no complaint.
void run_well(Program program, const std::string& failed,
              const std::function<bool(const std::string&)>& on_line = {}) {
  Complaint complaint;
  OutputPipe pipe(OutputPipe::Overflow::wait, [&](std::string_view line) {
    if (line.empty() || (on_line && on_line(std::string(line)))) return;
    complaint.add(line);
  });
  program.output_fd = pipe.writing_end();
  const bool ended_well = run_program(program);
  pipe.finish();
  if (!ended_well) throw UserError(fmt::format("{}: {}", failed, complaint.text()));
}

void verify(const PostgresBinaries& tools, const User& user, const std::string& folder,
            const std::string& failed) {
  const auto seen = seen_by(user, folder);
  Program program{.identity = user.identity};
  program.argv = {tools.bin_dir + "/pg_verifybackup", "--exit-on-error", "--quiet",
                  path_in_child(seen, program)};
  run_well(std::move(program), failed);
}

// Makes the folder, or takes an empty one. True: it was made.
bool prepare_target(const std::string& folder, const User& user) {
  struct stat info{};
  if (::lstat(folder.c_str(), &info) != 0) {
    if (errno != ENOENT) throw UserError(fmt::format("{} can't be used: {}", folder, error_text(errno)));
    try {
      make_private_folder(folder, user);
    } catch (const std::system_error& error) {
      throw UserError(fmt::format("{} can't be made: {}", folder, error.code().message()));
    }
    return true;
  }
  if (!S_ISDIR(info.st_mode)) throw UserError(folder + " is no folder");
  std::error_code error;
  const bool is_empty = fs::is_empty(folder, error);
  if (error) throw UserError(fmt::format("{} can't be read: {}", folder, error.message()));
  if (!is_empty)
    throw UserError(fmt::format("{} is not empty: a backup goes into a new or an empty folder", folder));
  if (user.identity && info.st_uid != user.uid) {
    throw UserError(fmt::format(
        "{} belongs to uid {}, but the backup is written by {} (uid {}): name a folder that is not there "
        "yet, or chown it",
        folder, info.st_uid, user.name, user.uid));
  }
  return false;
}

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code ignored;  // a file may go while it is looked at
  for (auto at = fs::recursive_directory_iterator(folder, ignored); at != fs::recursive_directory_iterator();
       at.increment(ignored)) {
    if (ignored) break;
    const auto size = at->is_regular_file(ignored) ? at->file_size(ignored) : 0;
    if (!ignored) bytes += size;
  }
  return bytes;
}

// As the user, so that root reads nothing for anybody who could not.
void copy_files(const User& user, const std::string& from, const std::string& to, std::uint64_t total,
                const BackupProgress& on_progress) {
  const auto seen_from = seen_by(user, from);
  const auto seen_to = seen_by(user, to);
  Complaint complaint;
  OutputPipe pipe(OutputPipe::Overflow::wait, [&](std::string_view line) { complaint.add(line); });
  Program program{.identity = user.identity, .output_fd = pipe.writing_end()};
  const auto source = path_in_child(seen_from, program) + "/.";
  program.argv = {kCopy, "-R", source, path_in_child(seen_to, program)};
  const auto pid = spawn_program(program);
  int status = 0;
  auto measure_at = std::chrono::steady_clock::now() + kCopyMeasure;
  for (;;) {
    const auto ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    std::this_thread::sleep_for(kCopyPoll);
    if (std::chrono::steady_clock::now() < measure_at) continue;
    on_progress(bytes_in(to), total);
    measure_at = std::chrono::steady_clock::now() + kCopyMeasure;
  }
  pipe.finish();
  on_progress(bytes_in(to), total);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UserError(fmt::format("{} can't be copied to {}: {}", from, to, complaint.text()));
}

int major_of_backup(const std::string& folder) {
  if (!fs::is_directory(folder)) throw UserError(folder + " is no folder");
  for (const auto* name : {"PG_VERSION", kManifest}) {
    std::error_code error;
    if (fs::exists(folder + "/" + name, error)) continue;
    throw UserError(fmt::format("{} is no whole backup: {}", folder,
                                error ? error.message() : fmt::format("it has no file {}", name)));
  }
  int major = 0;
  std::string text;
  try {
    text = read_private_file(folder + "/PG_VERSION");
  } catch (const std::system_error& error) {
    throw UserError(fmt::format("{} can't be read: {}", folder, error.code().message()));
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  if (error != std::errc()) throw UserError(folder + "/PG_VERSION holds no version");
  return major;
}

void refuse_used(const Layout& layout) {
  std::error_code error;
  if (!fs::exists(layout.cluster, error) && !error) return;
  if (!error && fs::is_directory(layout.cluster, error) && fs::is_empty(layout.cluster, error) && !error)
    return;
  throw UserError(
      fmt::format("{} is there already: a backup is restored into a data folder without a database. Move it "
                  "away, or choose "
                  "another data folder with --data_dir",
                  layout.cluster));
}

void refuse_too_large(std::uint64_t bytes, const Layout& layout) {
  const auto free = free_disk_bytes(layout.data_dir);
  if (bytes <= free) return;
  throw UserError(fmt::format("the backup has {} MiB, and {} has {} MiB free", bytes >> kMebibyteBits,
                              layout.data_dir, free >> kMebibyteBits));
}

// The folder that becomes the cluster; removed unless it did.
class Staging {
 public:
  Staging(const Layout& layout, const User& user)
      : layout_(layout), path_(make_staging_folder(layout, user)) {}
  ~Staging() {
    if (path_.empty()) return;
    std::error_code ignored;  // the next start removes what is left
    fs::remove_all(path_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void become_cluster() {
    const Fd folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder || ::syncfs(folder.get()) != 0)
      throw std::system_error(errno, std::generic_category(), "sync " + path_);
    if (::rename(path_.c_str(), layout_.cluster.c_str()) != 0)
      throw std::system_error(errno, std::generic_category(), "rename to " + layout_.cluster);
    path_.clear();
    sync_folder(layout_.data_dir);
  }

 private:
  const Layout& layout_;
  std::string path_;
};

}  // namespace

bool parse_backup_progress(const std::string& line, std::uint64_t& done, std::uint64_t& total) {
  const auto begin = line.find_first_not_of(' ');
  const auto unit = line.find(" kB (");
  if (begin == std::string::npos || unit == std::string::npos) return false;
  const auto* end = line.data() + unit;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  const auto [slash, error] = std::from_chars(line.data() + begin, end, first);
  if (error != std::errc() || slash == end || *slash != '/') return false;
  const auto [rest, wrong] = std::from_chars(slash + 1, end, second);
  if (wrong != std::errc() || rest != end) return false;
  done = first * kKibibyte;
  total = second * kKibibyte;
  return true;
}

void take_backup(const Options& options, const std::string& folder, const BackupProgress& on_progress) {
  const auto user = user_of(options);
  const auto layout = layout_of(options.data_dir);
  const auto target = absolute_folder(folder);
  const auto major = cluster_major(layout, user);
  if (!major) throw UserError(fmt::format("there is no database in {}", layout.data_dir));
  const auto tools = tools_for(options, *major);
  const bool was_made = prepare_target(target, user);
  try {
    const auto seen = seen_by(user, target);
    const auto sockets = seen_by(user, layout.sockets);
    Program program{.identity = user.identity};
    const auto in_child = path_in_child(seen, program);
    const auto socket_folder = path_in_child(sockets, program);
    program.argv = {tools.bin_dir + "/pg_basebackup",
                    "--host=" + socket_folder,
                    fmt::format("--port={}", kPort),
                    fmt::format("--username={}", kOwnerRole),
                    "--no-password",
                    "--pgdata=" + in_child,
                    "--wal-method=stream",
                    "--checkpoint=fast",
                    "--label=todoke backup",
                    "--progress"};
    run_well(std::move(program), "pg_basebackup failed", [&on_progress](const std::string& line) {
      std::uint64_t done = 0;
      std::uint64_t total = 0;
      if (!parse_backup_progress(line, done, total)) return line == "waiting for checkpoint";
      on_progress(done, total);
      return true;
    });
  } catch (const std::exception&) {
    if (was_made) ::rmdir(target.c_str());
    throw;
  }
  verify(tools, user, target, fmt::format("the backup in {} does not agree with its manifest", target));
}

void restore_backup(const Options& options, const std::string& folder, const BackupProgress& on_progress) {
  const auto user = user_of(options);
  const auto layout = layout_of(options.data_dir);
  const auto source = absolute_folder(folder);
  const auto tools = tools_for(options, major_of_backup(source));
  refuse_used(layout);
  make_data_folder(layout, user);
  const DataFolderLock lock(layout.data_dir, user);
  refuse_used(layout);
  remove_half_made(layout);
  const auto bytes = bytes_in(source);
  refuse_too_large(bytes, layout);
  Staging staging(layout, user);
  copy_files(user, source, staging.path(), bytes, on_progress);
  verify(tools, user, staging.path(),
         fmt::format("the backup in {} does not agree with its manifest", source));
  staging.become_cluster();
}

}  // namespace todoke::embedded
