#include "users/personal_data.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "users/personal_data_sql.hpp"
#include "users/zip.hpp"

namespace todoke::users {
namespace {

using jobs::Run;
using JobResult = Expected<std::string>;

constexpr std::chrono::seconds kDataStepMax(60);
constexpr std::chrono::seconds kEraserPoll(1);
constexpr std::chrono::hours kExportKept(24 * 7);
// Half a MiB of each partition, as the eraser reads them.
constexpr std::int64_t kBlocksAtOnce = 64;
// A row of export_chunks holds at most a MiB.
constexpr std::size_t kChunkBytes = 512 * 1024;
constexpr std::string_view kNobodyWaits = R"({"done":false})";

Task<pg::Result> ask(pg::Pool& pool, pg::Statement statement, pg::Params params) {
  const auto deadline = Deadline::after(kDataStepMax);
  const auto lease = co_await pool.acquire(deadline);
  auto result = co_await lease->query(statement, std::move(params), deadline);
  co_return result;
}

// The key that a job is about; nothing: the request is over or cancelled.
Task<std::optional<std::string>> begin_request(pg::Pool& pool, std::string request) {
  const auto rows = co_await ask(pool, sql::kBeginDataRequest, {request});
  if (rows.empty()) co_return std::nullopt;
  co_return rows.one().get<std::string>("pubkey");
}

std::string block_place(std::int64_t block) {
  return fmt::format("({},0)", block);
}

// One try of an export.
class Export {
 public:
  Export(pg::Pool& pool, Run& run, std::string pubkey)
      : pool_(pool), run_(run), request_(run.subject()), pubkey_(std::move(pubkey)) {}

  // False: the try was ended.
  Task<bool> write_all() {
    co_await ask(pool_, sql::kForgetChunks, {request_});
    co_await write_account();
    const bool is_whole = co_await write_events();
    if (!is_whole) co_return false;
    zip_.end();
    co_await store(0);
    pg::Params params(request_, bytes_, static_cast<double>(std::chrono::seconds(kExportKept).count()));
    co_await ask(pool_, sql::kFinishExport, std::move(params));
    co_return true;
  }
  [[nodiscard]] std::string result() const { return fmt::format(R"({{"bytes":{}}})", bytes_); }

 private:
  Task<void> write_account() {
    const auto rows = co_await ask(pool_, sql::kExportAccount, {pubkey_});
    std::string file;
    for (const auto& row : rows) {
      if (auto name = row.get<std::string>("file"); name != file) {
        file = std::move(name);
        zip_.begin_file(file + ".jsonl");
      }
      zip_.write(row.get<std::string>("line") + "\n");
    }
    co_await store(kChunkBytes);
  }

  Task<bool> write_events() {
    zip_.begin_file("events.jsonl");
    const auto counted = co_await ask(pool_, sql::kEventBlocks, {});
    const auto blocks = counted.one().get<std::int64_t>("blocks");
    for (std::int64_t from = 0; from < blocks; from += kBlocksAtOnce) {
      const auto began = std::chrono::steady_clock::now();
      const auto to = std::min(from + kBlocksAtOnce, blocks);
      const auto rows =
          co_await ask(pool_, sql::kExportEvents, pg::Params(pubkey_, block_place(from), block_place(to)));
      for (const auto& row : rows) zip_.write(row.get<std::string>("line") + "\n");
      co_await store(kChunkBytes);
      const bool goes_on = co_await run_.keep(to, blocks, "{}");
      if (!goes_on) co_return false;
      co_await sleep_for(std::chrono::steady_clock::now() - began);
    }
    co_return true;
  }

  // Stores what waits, once it is more than that.
  Task<void> store(std::size_t more_than) {
    if (zip_.waiting() <= more_than) co_return;
    const auto made = zip_.take();
    for (std::size_t at = 0; at < made.size(); at += kChunkBytes) {
      const auto piece = std::string_view(made).substr(at, kChunkBytes);
      co_await ask(pool_, sql::kAddChunk, pg::Params(request_, chunks_, as_bytes(piece)));
      ++chunks_;
      bytes_ += static_cast<std::int64_t>(piece.size());
    }
  }

  pg::Pool& pool_;
  Run& run_;
  const std::string request_;
  const std::string pubkey_;
  ZipWriter zip_;
  std::int32_t chunks_ = 0;
  std::int64_t bytes_ = 0;
};

Task<JobResult> run_export(pg::Pool& pool, Run& run) {
  auto pubkey = co_await begin_request(pool, run.subject());
  if (!pubkey) co_return std::string(kNobodyWaits);
  Export work(pool, run, std::move(*pubkey));
  co_await work.write_all();
  co_return work.result();
}

Task<void> ask_to_vanish(pg::Pool& pool, std::string pubkey, std::string request) {
  const auto deadline = Deadline::after(kDataStepMax);
  pg::Batch batch;
  batch.add(sql::kLockForVanishing).add(sql::kAskToVanish, pg::Params(pubkey, request));
  const auto lease = co_await pool.acquire(deadline);
  co_await lease->run(std::move(batch), deadline);
}

// False: the try was ended before nothing was left.
Task<bool> wait_until_vanished(pg::Pool& pool, Run& run, std::string pubkey) {
  while (true) {
    const auto rows = co_await ask(pool, sql::kHasVanished, {pubkey});
    if (!rows.empty() && rows.one().get<bool>(0)) co_return true;
    const bool goes_on = co_await run.keep(0, std::nullopt, "{}");
    if (!goes_on) co_return false;
    co_await sleep_for(kEraserPoll);
  }
}

Task<JobResult> run_deletion(pg::Pool& pool, Run& run) {
  const auto pubkey = co_await begin_request(pool, run.subject());
  if (!pubkey) co_return std::string(kNobodyWaits);
  co_await ask(pool, sql::kForgetPerson, {*pubkey});
  co_await ask_to_vanish(pool, *pubkey, run.subject());
  const bool is_gone = co_await wait_until_vanished(pool, run, *pubkey);
  if (!is_gone) co_return std::string(kNobodyWaits);
  co_await ask(pool, sql::kForgetPerson, {*pubkey});
  co_await ask(pool, sql::kFinishDeletion, {run.subject()});
  co_return std::string("{}");
}

}  // namespace

jobs::Kind export_kind(pg::Pool& pool) {
  return {"personal_data.export", [&pool](Run& run) { return run_export(pool, run); }};
}

jobs::Kind deletion_kind(pg::Pool& pool) {
  return {"personal_data.deletion", [&pool](Run& run) { return run_deletion(pool, run); }};
}

}  // namespace todoke::users
