// A tsvector in Postgres' binary form, made of tokens without going through text: no quoting, and the server
// neither parses nor sorts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/tokens.hpp"
#include "pg/codec.hpp"

namespace todoke::index {

// What a word counts for, by where it stands.
enum class Weight : std::uint8_t { body = 0, summary = 2, title = 3 };  // D, B and A of Postgres

struct TsVector {
  std::string bytes;
};

class TsVectorBuilder {
 public:
  // Texts are given in the order in which they stand in the document. A phrase does not reach from one into
  // the next. What is beyond kTokensMax tokens in all is left out.
  void add(std::string_view text, Weight weight);
  [[nodiscard]] TsVector build();
  [[nodiscard]] std::size_t tokens() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint16_t size;
    std::uint16_t place;  // position and weight, as Postgres packs them
  };
  std::string text_;
  std::vector<Entry> entries_;
  std::size_t position_ = 0;  // the last one used
};

}  // namespace todoke::index

template <>
struct todoke::pg::Codec<todoke::index::TsVector> : todoke::pg::CodecOids<3614, 3643> {
  static void encode(std::string& out, const todoke::index::TsVector& value) { out.append(value.bytes); }
};
