#include "app/data_output.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace todoke::app {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr std::size_t kPackedPieceBytes = 128 * 1024;
constexpr int kGzipFormat = 15 + 16;  // zlib: the largest window, and a header of gzip
constexpr int kMemoryLevel = 8;       // zlib's default
constexpr int kZstdLevel = 3;         // its default: as small as gzip, several times as fast

}  // namespace

// Appends what `in` becomes to `out`.
class DataOutput::Packer {
 public:
  virtual ~Packer() = default;
  virtual void pack(std::string_view in, Step step, std::string& out) = 0;
};

namespace {

class GzipPacker final : public DataOutput::Packer {
 public:
  GzipPacker() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipFormat, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~GzipPacker() override { deflateEnd(&stream_); }
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

  void pack(std::string_view in, DataOutput::Step step, std::string& out) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    const int how = step == DataOutput::Step::end     ? Z_FINISH
                    : step == DataOutput::Step::flush ? Z_SYNC_FLUSH
                                                      : Z_NO_FLUSH;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      deflate(&stream_, how);
      out.append(piece_.data(), piece_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
  std::array<char, kPackedPieceBytes> piece_{};
};

class ZstdPacker final : public DataOutput::Packer {
 public:
  ZstdPacker() {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  void pack(std::string_view in, DataOutput::Step step, std::string& out) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    const auto how = step == DataOutput::Step::end     ? ZSTD_e_end
                     : step == DataOutput::Step::flush ? ZSTD_e_flush
                                                       : ZSTD_e_continue;
    std::size_t left = 0;
    do {
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      left = ZSTD_compressStream2(context_.get(), &output, &input, how);
      if (ZSTD_isError(left) != 0) throw std::runtime_error(fmt::format("zstd: {}", ZSTD_getErrorName(left)));
      out.append(piece_.data(), output.pos);
    } while (step == DataOutput::Step::go_on ? input.pos < input.size : left > 0);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
  std::array<char, kPackedPieceBytes> piece_{};
};

std::unique_ptr<DataOutput::Packer> make_packer(Packing packing) {
  if (packing == Packing::gzip) return std::make_unique<GzipPacker>();
  if (packing == Packing::zstd) return std::make_unique<ZstdPacker>();
  return nullptr;
}

Fd made_file(const std::string& path) {
  if (path.empty()) return Fd();
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const int error = errno;
  if (!fd)
    throw UserError(fmt::format("{} can't be written: {}", path, std::generic_category().message(error)));
  return fd;
}

}  // namespace

DataOutput::DataOutput(const std::string& path, Packing packing)
    : name_(path.empty() ? "stdout" : path),
      own_(made_file(path)),
      fd_(own_ ? own_.get() : STDOUT_FILENO),
      packer_(make_packer(packing)) {}

DataOutput::~DataOutput() = default;

void DataOutput::line(std::string_view text) {
  buffer_ += text;
  buffer_ += '\n';
  if (buffer_.size() >= kBufferBytes) pack(Step::go_on);
}

void DataOutput::flush() {
  pack(Step::flush);
}

void DataOutput::finish() {
  pack(Step::end);
  // A pipe or a device has nothing to sync.
  if (own_ && fsync(own_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    throw UserError(fmt::format("{} can't be written: {}", name_, std::generic_category().message(errno)));
  }
}

void DataOutput::pack(Step step) {
  if (!packer_) {
    write_out(buffer_);
  } else {
    std::string packed;
    packer_->pack(buffer_, step, packed);
    write_out(packed);
  }
  buffer_.clear();
}

void DataOutput::write_out(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      throw UserError(fmt::format("{} can't be written: {}", name_, std::generic_category().message(errno)));
    }
  }
}

}  // namespace todoke::app
