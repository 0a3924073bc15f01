#include "queue/fate.hpp"

namespace todoke::queue {

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::waiting:
      return "waiting";
    case Fate::working:
      return "working";
    case Fate::undecided:
      return "undecided";
    case Fate::ended:
      return "ended";
    case Fate::settling:
      return "settling";
    case Fate::locked:
      return "locked";
    case Fate::settled:
      return "settled";
    case Fate::lost:
      return "lost";
    case Fate::dropped:
      return "dropped";
  }
  return "";
}

bool may_become(Fate from, Fate to) {
  if (to == Fate::dropped) return is_held(from);
  switch (from) {
    case Fate::waiting:
      return to == Fate::working || to == Fate::ended;
    case Fate::working:
      return to == Fate::undecided || to == Fate::ended;
    case Fate::undecided:
      return to == Fate::ended;
    case Fate::ended:
    case Fate::locked:
      return to == Fate::settling;
    case Fate::settling:
      return to == Fate::settled || to == Fate::lost || to == Fate::locked;
    case Fate::settled:
    case Fate::lost:
    case Fate::dropped:
      return false;
  }
  return false;
}

}  // namespace todoke::queue
