#include "bootstrap/key_table.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "bootstrap/bootstrap_sql.hpp"

namespace todoke::bootstrap {
namespace {

struct KeyColumns {
  std::vector<std::string> algorithms;
  std::vector<std::string> pubkeys;
};

KeyColumns columns_of(const NodeKeys& keys) {
  KeyColumns columns;
  for (const auto& named : keys.all()) {
    columns.algorithms.emplace_back(named.algorithm);
    columns.pubkeys.push_back(named.key.pubkey().hex());
  }
  return columns;
}

}  // namespace

Task<void> replace_keys(pg::Connection& connection, const NodeKeys& keys, Deadline deadline) {
  const auto columns = columns_of(keys);
  pg::Batch batch;
  batch.add(sql::kWithdrawOtherKeys, {columns.pubkeys});
  batch.add(sql::kPutKeys, {columns.algorithms, columns.pubkeys});
  batch.add(sql::kForgetKeys);
  co_await connection.run(std::move(batch), deadline);
}

Task<void> register_keys(pg::Connection& connection, const NodeKeys& keys, const NodeKeys* old,
                         Deadline deadline) {
  const auto known = co_await connection.query(sql::kNodeKeyInUse, {}, deadline);
  if (!known.empty()) {
    const auto pubkey = known.one().get<std::string>(0);
    const bool is_ours = pubkey == keys.node().pubkey().hex();
    const bool is_rotated = old != nullptr && pubkey == old->node().pubkey().hex();
    if (!is_ours && !is_rotated) {
      throw UserError(fmt::format(
          "the database knows this node by the key {}, and the key file has {}: bring the file from the host "
          "that made it (bootstrap.key_file), or take the new key with `todoke key rotate --adopt`",
          pubkey, keys.node().pubkey().hex()));
    }
    const auto columns = columns_of(keys);
    const auto there = co_await connection.query(sql::kKeysInUse, {columns.pubkeys}, deadline);
    if (there.one().get<std::int64_t>(0) == static_cast<std::int64_t>(columns.pubkeys.size())) co_return;
  }
  co_await replace_keys(connection, keys, deadline);
}

}  // namespace todoke::bootstrap
