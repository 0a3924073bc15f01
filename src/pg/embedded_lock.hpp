// One todoke for one data folder: an flock on <data_dir>/todoke.lock, held as long as this object lives. The
// kernel drops it when the process dies, so a lock is never stale. The file holds the owner's pid, for
// people, and stays behind.
#pragma once

#include <string>

#include "pg/process_fd.hpp"

namespace todoke::pg {

class DataFolderLock {
 public:
  // Throws UserError that names the pid of the owner when another process holds the lock.
  explicit DataFolderLock(const std::string& data_dir);

 private:
  Fd fd_;
};

}  // namespace todoke::pg
