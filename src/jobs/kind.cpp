#include "jobs/kind.hpp"

#include <stdexcept>
#include <utility>

namespace todoke::jobs {

void Kinds::add(Kind kind) {
  auto name = kind.name;
  if (!kinds_.emplace(std::move(name), std::move(kind)).second) {
    throw std::logic_error("two kinds of jobs have one name");
  }
}

const Kind* Kinds::find(std::string_view name) const {
  const auto found = kinds_.find(name);
  return found == kinds_.end() ? nullptr : &found->second;
}

std::vector<std::string> Kinds::names() const {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds_) names.push_back(name);
  return names;
}

}  // namespace todoke::jobs
