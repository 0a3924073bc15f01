#include "users/zip.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace todoke::users {
namespace {

constexpr int kOwnerReads = 0600;

struct ArchiveFree {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct EntryFree {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

la_ssize_t append(archive* /*writer*/, void* out, const void* bytes, std::size_t size) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

}  // namespace

struct ZipWriter::State {
  std::string out;
  std::unique_ptr<archive, ArchiveFree> writer{archive_write_new()};

  void check(int result) const {
    if (result < ARCHIVE_WARN)
      throw std::runtime_error(std::string("zip: ") + archive_error_string(writer.get()));
  }
};

ZipWriter::ZipWriter() : state_(std::make_unique<State>()) {
  auto* writer = state_->writer.get();
  if (writer == nullptr) throw std::bad_alloc();
  state_->check(archive_write_set_format_zip(writer));
  // Else the end is filled up to a whole block.
  state_->check(archive_write_set_bytes_in_last_block(writer, 1));
  state_->check(archive_write_open(writer, &state_->out, nullptr, append, nullptr));
}

ZipWriter::~ZipWriter() = default;

void ZipWriter::begin_file(const std::string& name) {
  const std::unique_ptr<archive_entry, EntryFree> entry(archive_entry_new());
  if (!entry) throw std::bad_alloc();
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kOwnerReads);
  archive_entry_set_mtime(entry.get(), std::time(nullptr), 0);
  state_->check(archive_write_header(state_->writer.get(), entry.get()));
}

void ZipWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = archive_write_data(state_->writer.get(), bytes.data(), bytes.size());
    if (written <= 0) throw std::runtime_error("zip: nothing more can be written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void ZipWriter::end() {
  state_->check(archive_write_close(state_->writer.get()));
}

std::string ZipWriter::take() {
  return std::exchange(state_->out, {});
}

std::size_t ZipWriter::waiting() const {
  return state_->out.size();
}

}  // namespace todoke::users
