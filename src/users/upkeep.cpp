#include "users/upkeep.hpp"

#include <utility>

#include "base/secret_file.hpp"
#include "users/accounts_sql.hpp"
#include "users/personal_data_sql.hpp"

namespace todoke::users {
namespace {

constexpr std::chrono::minutes kUpkeepEvery(1);
constexpr std::size_t kSecretBytes = 32;
// Of each table in a round.
constexpr std::int64_t kPurgedMax = 10'000;
constexpr std::int64_t kExportsPurgedMax = 10;

}  // namespace

Upkeep::Upkeep(const Executor& executor, UpkeepOptions options, DeskPtr desk, metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "users upkeep", .failed = "what has expired was not thrown away", .every = kUpkeepEvery},
          registry),
      options_(std::move(options)),
      desk_(std::move(desk)) {}

Task<void> Upkeep::start() {
  auto secret = read_or_make_secret(options_.secret_file, kSecretBytes, "the secret of access tokens");
  desk_->set_tokens(api::AccessTokens(std::move(secret), options_.issuer, options_.token_lifetime));
  co_return;
}

Task<void> Upkeep::round(RoundCause /*cause*/) {
  co_await desk_->ask(sql::kPurgeChallenges, {kPurgedMax});
  co_await desk_->ask(sql::kPurgeUsageEvents, {kPurgedMax});
  co_await desk_->ask(sql::kPurgeUsageCounters, {kPurgedMax});
  co_await desk_->ask(sql::kPurgeExports, {kExportsPurgedMax});
  co_await desk_->ask(sql::kSettleDataRequests, {});
}

}  // namespace todoke::users
