#include "app/decoder.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <zlib.h>
#include <zstd.h>

#include <fmt/format.h>

namespace todoke::app {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
// zlib: the largest window, and a header of gzip.
constexpr int kGzipWindowBits = 15 + 16;

using Piece = std::array<char, Decoder::kStepBytesMax>;

class PlainDecoder final : public Decoder {
 public:
  Expected<std::size_t> step(std::string_view in, std::string& out) override {
    const auto taken = in.substr(0, kStepBytesMax);
    out += taken;
    return taken.size();
  }
  [[nodiscard]] bool may_end() const override { return true; }
};

// A file of gzip may hold several streams, one after the other.
class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() {
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  Expected<std::size_t> step(std::string_view in, std::string& out) override {
    if (in.empty() && ended_) return 0;
    if (ended_ && inflateReset(&stream_) != Z_OK) return refuse("gzip: another stream can't be read");
    ended_ = false;
    // zlib counts in 32 bits.
    const auto given = std::min<std::size_t>(in.size(), kStepBytesMax);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return refuse(fmt::format("gzip: {}", stream_.msg == nullptr ? "broken" : stream_.msg));
    }
    ended_ = result == Z_STREAM_END;
    out.append(piece_.data(), piece_.size() - stream_.avail_out);
    return given - stream_.avail_in;
  }
  [[nodiscard]] bool may_end() const override { return ended_; }

 private:
  z_stream stream_{};
  Piece piece_{};
  bool ended_ = false;
};

class ZstdDecoder final : public Decoder {
 public:
  Expected<std::size_t> step(std::string_view in, std::string& out) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
    const auto left = ZSTD_decompressStream(stream_.get(), &output, &input);
    if (ZSTD_isError(left) != 0) return refuse(fmt::format("zstd: {}", ZSTD_getErrorName(left)));
    // Without input the library asks for the next frame, which does not make the last one incomplete.
    if (input.pos > 0 || output.pos > 0) ended_ = left == 0;
    out.append(piece_.data(), output.pos);
    return input.pos;
  }
  [[nodiscard]] bool may_end() const override { return ended_; }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  Piece piece_{};
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(std::string_view start) {
  if (start.starts_with(kGzipMagic)) return std::make_unique<GzipDecoder>();
  if (start.starts_with(kZstdMagic)) return std::make_unique<ZstdDecoder>();
  return std::make_unique<PlainDecoder>();
}

}  // namespace todoke::app
