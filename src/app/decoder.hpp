// Bytes of a file as they were before it was compressed: plain, gzip or zstd, found by the first bytes.
//
// Bounded: a step gives at most kStepBytesMax, whatever a small file claims to hold. zstd needs a window of
// up to 128 MiB, its library's own bound; a file that asks for more is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::app {

class Decoder {
 public:
  static constexpr std::size_t kStepBytesMax = 64 * 1024;

  virtual ~Decoder() = default;
  // Takes from the front of `in`, appends to `out`, and returns how many bytes it took. Nothing taken and
  // nothing appended: it needs more. A refusal: the bytes are none of this form.
  virtual Expected<std::size_t> step(std::string_view in, std::string& out) = 0;
  // Whether the bytes may end here.
  [[nodiscard]] virtual bool may_end() const = 0;
};

// What tells the forms apart: gzip by two bytes, zstd by four.
inline constexpr std::size_t kMagicBytes = 4;

// `start`: the first kMagicBytes of the file, or all of a shorter one.
std::unique_ptr<Decoder> make_decoder(std::string_view start);

}  // namespace todoke::app
