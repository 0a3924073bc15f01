// The part of the relay that the writer tells of its commits. Called on the writer's executor.
#pragma once

#include <optional>
#include <vector>

#include "relay/store.hpp"

namespace todoke::relay {

class CommitListener {
 public:
  virtual ~CommitListener() = default;

  // The writer or eraser that has locked the log reports what the lock said, before anything else of that
  // transaction. Whichever of them first finds the log in another place reports it here.
  void locked(const Appended& log);
  // After which seq the log goes on in its place, as locked() was told last; 0 before that.
  [[nodiscard]] nostr::Seq since() const { return since_.value_or(nostr::Seq{}); }

  // Events lost their effect by a commit. Called before any outcome of it is told: a client that got its OK
  // for a deletion must not find the target known.
  virtual void lost_effect(const std::vector<Gone>& gone) = 0;
  // What a commit has done, in the order of the log.
  virtual void appended(const Appended& log, std::vector<LiveEventPtr> stored) = 0;
  // The database was restored or promoted; cached content may be stale. Called by locked(), so before
  // anything that was appended since is told.
  virtual void restored() = 0;
  // The last seq of the log that this part has seen. Whatever is restored, the log goes on beyond it.
  [[nodiscard]] virtual nostr::Seq head() const = 0;

 private:
  std::optional<nostr::Seq> since_;
};

}  // namespace todoke::relay
