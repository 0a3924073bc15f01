#include "index/ts_vector.hpp"

#include <algorithm>

namespace todoke::index {
namespace {

constexpr unsigned kWeightShift = 14;
constexpr std::size_t kPlacesMax = 255;  // of one lexeme: Postgres takes no more
constexpr std::size_t kTextGap = 1;      // positions between two texts

}  // namespace

void TsVectorBuilder::add(std::string_view text, Weight weight) {
  if (position_ > 0) position_ += kTextGap;
  if (position_ >= kTokensMax) return;
  const auto normal = normal_text(text);
  const auto base = static_cast<std::uint32_t>(text_.size());
  const auto shifted = static_cast<unsigned>(weight) << kWeightShift;
  std::size_t last = position_;
  for (const auto& token : tokens_of(normal, kTokensMax - position_)) {
    last = position_ + token.position;
    entries_.push_back({base + token.offset, token.size, static_cast<std::uint16_t>(shifted | last)});
  }
  position_ = last;
  text_ += normal;
}

TsVector TsVectorBuilder::build() {
  const std::string_view text = text_;
  const auto lexeme = [text](const Entry& entry) { return text.substr(entry.offset, entry.size); };
  const auto position = [](const Entry& entry) { return entry.place & ((1U << kWeightShift) - 1); };
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    const auto order = lexeme(a).compare(lexeme(b));
    return order != 0 ? order < 0 : position(a) < position(b);
  });

  TsVector vector;
  auto& out = vector.bytes;
  out.reserve(4 + text_.size() + entries_.size() * 6);
  pg::append_int(out, 0, 4);
  std::uint32_t lexemes = 0;
  for (std::size_t first = 0; first < entries_.size();) {
    auto end = first + 1;
    while (end < entries_.size() && lexeme(entries_[end]) == lexeme(entries_[first])) ++end;
    out.append(lexeme(entries_[first]));
    out.push_back('\0');
    const auto places = std::min(end - first, kPlacesMax);
    pg::append_int(out, places, 2);
    for (auto i = first; i < first + places; ++i) pg::append_int(out, entries_[i].place, 2);
    first = end;
    ++lexemes;
  }
  std::string count;
  pg::append_int(count, lexemes, 4);
  out.replace(0, count.size(), count);
  return vector;
}

}  // namespace todoke::index
