// Work on a batch that one item can spoil: the whole first, then halves of what failed, in their order, down
// to the item that fails by itself.
//
// Cost: a batch of n items of which one is bad takes about 2 log2 n further tries.
#pragma once

#include <cstddef>
#include <exception>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "base/attempt.hpp"

namespace todoke {

// What to do about a part that failed.
enum class AfterFailure {
  halve,  // only where it has more than one item
  again,
  drop,
};

// Moves the first half out of the part; the second half stays.
template <class Item>
std::vector<Item> split_first_half(std::vector<Item>& part) {
  const auto half = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  std::vector<Item> first(std::make_move_iterator(part.begin()), std::make_move_iterator(half));
  part.erase(part.begin(), half);
  return first;
}
template <class Item>
std::span<Item> split_first_half(std::span<Item>& part) {
  const auto first = part.first(part.size() / 2);
  part = part.subspan(first.size());
  return first;
}

// `work(part)` gives a Task<void>, `judge(failure, part)` a Task<AfterFailure>. What the judge throws ends
// it.
template <class Part, class Work, class Judge>
Task<void> in_halves(Part whole, Work work, Judge judge) {
  std::vector<Part> parts;  // the last one is next
  parts.push_back(std::move(whole));
  while (!parts.empty()) {
    const auto done = co_await attempt(work(parts.back()));
    const auto next = done ? AfterFailure::drop : co_await judge(done.error(), parts.back());
    if (next == AfterFailure::drop) parts.pop_back();
    if (next != AfterFailure::halve) continue;
    auto first = split_first_half(parts.back());
    parts.push_back(std::move(first));
  }
}

}  // namespace todoke
