// The settings of the embedded Postgres, computed from the size of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace todoke::embedded {

struct Settings {
  std::uint64_t shared_buffers_mb = 0;
  std::uint64_t effective_cache_size_mb = 0;
  std::uint64_t maintenance_work_mem_mb = 0;
  std::uint64_t max_wal_size_mb = 0;
};

Settings settings_for(std::uint64_t memory_bytes, std::uint64_t disk_free_bytes);

// The file todoke.conf, which postgresql.conf includes. `tcp` is what tcp_settings() says (tcp.hpp).
std::string settings_file(const Settings& settings, std::string_view tcp);

}  // namespace todoke::embedded
