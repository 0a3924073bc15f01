// How much memory and disk this machine (or container) gives us.
#pragma once

#include <cstdint>
#include <string>

namespace todoke::embedded {

// The smaller of MemTotal and the limits of our control groups (v2 and v1). `root` stands before /proc and
// /sys, for tests.
std::uint64_t machine_memory_bytes(const std::string& root = "");

// Free for us on the file system of `folder`.
std::uint64_t free_disk_bytes(const std::string& folder);

}  // namespace todoke::embedded
