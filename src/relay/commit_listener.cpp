#include "relay/commit_listener.hpp"

#include "base/log.hpp"

namespace todoke::relay {

void CommitListener::locked(const Appended& log) {
  const bool is_first = !since_;
  if (since_ == log.since) return;
  since_ = log.since;
  if (log.moved) {
    log::warning("relay", "the database was restored or promoted: the log goes on with later seqs",
                 {{"after", log.since.value}});
  }
  if (!is_first) restored();
}

}  // namespace todoke::relay
