#include "relay/export.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "pg/transaction.hpp"
#include "relay/event_rows.hpp"
#include "relay/export_sql.hpp"

namespace todoke::relay {
namespace {

// A page of events of 64 KiB each takes 32 MiB; of ordinary ones half a megabyte.
constexpr std::size_t kPageEvents = 500;
// Sorting the keys of millions of events is a matter of seconds, on a slow disk of minutes.
constexpr std::chrono::minutes kKeysMax(30);
constexpr std::chrono::minutes kPageMax(2);

// An event's place in the tables, as it lies in the temporary file of this process.
struct ExportKey {
  std::int64_t seq;
  std::int64_t micros;  // of ingested_at, since 1970
  nostr::EventId::Bytes id;
};
static_assert(sizeof(ExportKey) == 48);

[[noreturn]] void throw_spool_error(int error) {
  throw UserError(fmt::format("the temporary file for the keys of the export fails (in $TMPDIR or /tmp): {}",
                              std::generic_category().message(error)));
}

// Without a name: it goes with the process.
Fd make_spool() {
  auto path = (std::filesystem::temp_directory_path() / "todoke-export-XXXXXX").string();
  Fd fd(mkstemp(path.data()));
  if (!fd) throw_spool_error(errno);
  unlink(path.c_str());
  return fd;
}

void append(const Fd& file, const std::vector<ExportKey>& keys) {
  const auto* bytes = reinterpret_cast<const char*>(keys.data());
  std::size_t left = keys.size() * sizeof(ExportKey);
  while (left > 0) {
    const auto written = write(file.get(), bytes, left);
    if (written < 0 && errno != EINTR) throw_spool_error(errno);
    if (written <= 0) continue;
    bytes += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::vector<ExportKey> read_page(const Fd& file, std::uint64_t from, std::size_t count) {
  std::vector<ExportKey> keys(count);
  auto* bytes = reinterpret_cast<char*>(keys.data());
  auto at = static_cast<off_t>(from * sizeof(ExportKey));
  std::size_t left = count * sizeof(ExportKey);
  while (left > 0) {
    const auto got = pread(file.get(), bytes, left, at);
    if (got == 0 || (got < 0 && errno != EINTR)) throw_spool_error(got == 0 ? EIO : errno);
    if (got < 0) continue;
    bytes += got;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  return keys;
}

ExportKey export_key_of(const pg::Row& row) {
  const auto at = row.get<SystemTime>(2).time_since_epoch();
  return {row.get<std::int64_t>(0), std::chrono::duration_cast<std::chrono::microseconds>(at).count(),
          nostr::EventId::from_hex(row.get<std::string_view>(1)).value().bytes()};
}

}  // namespace

Task<Export> Export::begin(pg::Connection& connection, nostr::Seq after) {
  Export exported(connection, make_spool(), after);
  co_await exported.read_keys(after);
  co_return std::move(exported);
}

Task<void> Export::read_keys(nostr::Seq after) {
  const auto deadline = Deadline::after(kKeysMax);
  auto transaction = co_await pg::begin(*connection_, deadline);
  co_await connection_->query(sql::kOpenExport, {after.value}, deadline);
  while (true) {
    const auto rows = co_await connection_->query(sql::kFetchExport, {}, deadline);
    if (rows.empty()) break;
    std::vector<ExportKey> keys;
    keys.reserve(rows.size());
    for (const auto& row : rows) keys.push_back(export_key_of(row));
    append(keys_, keys);
    total_ += keys.size();
  }
  co_await transaction.commit(deadline);
}

Task<std::vector<LiveEventPtr>> Export::next() {
  std::vector<LiveEventPtr> events;
  const auto count = std::min<std::uint64_t>(kPageEvents, total_ - given_);
  if (count == 0) co_return events;
  const auto keys = read_page(keys_, given_, count);
  std::vector<std::string> ids;
  std::vector<SystemTime> times;
  for (const auto& key : keys) {
    ids.push_back(nostr::EventId(key.id).hex());
    times.emplace_back(std::chrono::microseconds(key.micros));
  }
  pg::Params params(ids, times);
  const auto rows =
      co_await connection_->query(sql::kExportedEvents, std::move(params), Deadline::after(kPageMax));
  for (const auto& row : rows) events.push_back(read_event(row));
  given_ += count;
  cursor_ = {keys.back().seq};
  co_return events;
}

}  // namespace todoke::relay
