// A name that no other worker has, also none of an earlier process: host, process id and something random.
#pragma once

#include <string>

namespace todoke::queue {

std::string worker_name();

}  // namespace todoke::queue
