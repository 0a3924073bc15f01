#include "admin/trail.hpp"

#include <utility>

#include "admin/trail_sql.hpp"
#include "base/bytes.hpp"

namespace todoke::admin {
namespace {

using Hash = std::vector<std::uint8_t>;

constexpr std::int64_t kLinksAtOnce = 1'000;
constexpr std::size_t kBrokenMax = 1'000;
constexpr std::size_t kLinkHashBytes = 32;

std::string problem_of(const pg::Row& row) {
  if (!row.get<bool>("follows")) return "links before it are missing";
  if (row.get<bool>("is_gone")) return "its row is gone";
  if (!row.get<bool>("is_right")) return "its row, or a link before it, was changed";
  return {};
}

void add_broken(TrailCheck& check, BrokenLink link) {
  if (check.broken.size() < kBrokenMax) check.broken.push_back(std::move(link));
}

// Where the next page begins.
struct Place {
  std::int64_t number = 0;
  Hash hash = Hash(kLinkHashBytes);
};

Task<bool> check_page(pg::Connection& connection, Place& place, TrailCheck& check, Deadline deadline) {
  pg::Params params(place.number, place.hash, kLinksAtOnce);
  const auto rows = co_await connection.query(sql::kCheckLinks, std::move(params), deadline);
  for (const auto& row : rows) {
    ++check.links;
    place.number = row.get<std::int64_t>("number");
    place.hash = row.get<Hash>("hash");
    if (auto problem = problem_of(row); !problem.empty()) {
      add_broken(check, {place.number, row.get<std::string>("source"), row.get<std::string>("row_key"),
                         std::move(problem)});
    }
  }
  co_return rows.size() == static_cast<std::size_t>(kLinksAtOnce);
}

}  // namespace

Task<TrailCheck> check_trail(pg::Connection& connection, Deadline deadline) {
  TrailCheck check;
  // Read first: links that come meanwhile are behind it.
  const auto heads = co_await connection.query(sql::kChainHead, {}, deadline);
  const auto head_number = heads.one().get<std::int64_t>(0);
  Place place;
  bool goes_on = true;
  while (goes_on) goes_on = co_await check_page(connection, place, check, deadline);
  check.head = to_hex(place.hash);
  if (place.number < head_number) add_broken(check, {head_number, "chain", "", "the last links are missing"});
  pg::Params params(static_cast<std::int64_t>(kBrokenMax));
  const auto loose = co_await connection.query(sql::kRowsWithoutLink, std::move(params), deadline);
  for (const auto& row : loose)
    add_broken(check, {0, row.get<std::string>(0), row.get<std::string>(1), "a row that has no link"});
  co_return check;
}

}  // namespace todoke::admin
