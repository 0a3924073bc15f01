#include "embedded/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace todoke::embedded {
namespace {

constexpr std::uint64_t kMebibyte = 1024 * 1024;

// An eighth and not the usual quarter: todoke itself lives on the same machine, and the kernel caches files
// as well.
constexpr std::uint64_t kSharedBuffersShare = 8;
constexpr std::uint64_t kSharedBuffersMbMin = 128;
constexpr std::uint64_t kSharedBuffersMbMax = 2048;

constexpr std::uint64_t kCacheShare = 2;

constexpr std::uint64_t kMaintenanceShare = 32;
constexpr std::uint64_t kMaintenanceMbMin = 64;
constexpr std::uint64_t kMaintenanceMbMax = 512;

// Few checkpoints mean few full-page writes; a small disk must not be filled with WAL.
constexpr std::uint64_t kWalDiskShare = 10;
constexpr std::uint64_t kWalMbMin = 256;
constexpr std::uint64_t kWalMbMax = 4096;

}  // namespace

Settings settings_for(std::uint64_t memory_bytes, std::uint64_t disk_free_bytes) {
  const auto memory_mb = memory_bytes / kMebibyte;
  const auto disk_mb = disk_free_bytes / kMebibyte;
  return {
      .shared_buffers_mb =
          std::clamp(memory_mb / kSharedBuffersShare, kSharedBuffersMbMin, kSharedBuffersMbMax),
      .effective_cache_size_mb = std::max<std::uint64_t>(memory_mb / kCacheShare, 1),
      .maintenance_work_mem_mb =
          std::clamp(memory_mb / kMaintenanceShare, kMaintenanceMbMin, kMaintenanceMbMax),
      .max_wal_size_mb = std::clamp(disk_mb / kWalDiskShare, kWalMbMin, kWalMbMax),
  };
}

// Statements are logged without their parameters and errors without their details: both hold content.
std::string settings_file(const Settings& settings, std::string_view tcp) {
  return fmt::format(
      R"(# Written by todoke at each start; changes are lost. Put your own settings into postgresql.conf,
# below the line that includes this file.

{}max_connections = 200
password_encryption = 'scram-sha-256'

shared_buffers = {}MB
effective_cache_size = {}MB
work_mem = 16MB
maintenance_work_mem = {}MB

fsync = on
full_page_writes = on
synchronous_commit = on
wal_compression = lz4
max_wal_size = {}MB
checkpoint_timeout = 15min
checkpoint_completion_target = 0.9

random_page_cost = 1.1
jit = off

restart_after_crash = on

log_line_prefix = ''
log_min_duration_statement = 1s
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
log_error_verbosity = terse
log_lock_waits = on
log_startup_progress_interval = 5s
)",
      tcp, settings.shared_buffers_mb, settings.effective_cache_size_mb, settings.maintenance_work_mem_mb,
      settings.max_wal_size_mb);
}

}  // namespace todoke::embedded
