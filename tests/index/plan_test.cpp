// What a search reads, as the server counts it: a frequent word within something rare goes by what is rare.
#include <map>
#include <regex>

#include <fmt/format.h>

#include "index/rig.hpp"
#include "index/search_sql.hpp"

namespace todoke::index {
namespace {

// Of these every one has the word `common`, and forty have what is rare.
constexpr int kDocuments = 20'000;
// A page of forty results takes some 200 blocks; reading all documents takes thousands.
constexpr int kBlocksMax = 800;

void fill(Rig& rig) {
  rig.sql(fmt::format(R"(
    INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_seq, source, topics)
    SELECT encode(sha256(i::text::bytea), 'hex'), repeat(CASE WHEN i % 500 = 7 THEN 'b' ELSE 'a' END, 64),
      CASE WHEN i % 500 = 8 THEN 30023 ELSE 1 END, 1700000000 - i * 7919 % 86400,
      CASE WHEN i % 500 = 9 THEN '[["r","rare"],["e","often"]]'::json ELSE '[["e","often"]]' END,
      repeat('common ', 1 + i % 3) || md5(i::text), '', i, 'ws',
      CASE WHEN i % 500 = 10 THEN '{{kukuri:global,rare}}'::text[] ELSE '{{kukuri:global}}' END
    FROM generate_series(1, {}) i;
    ANALYZE cn_relay.events)",
                      kDocuments));
  rig.rebuild_and_swap();
}

// The plan of one page of a search for `common`; `given`: the values of the parameters $2 and so on by
// number.
Task<std::string> plan_of(Rig& rig, std::map<int, std::string> given) {
  constexpr int kParameters = 24;
  given.insert({{1, "'common'"}, {7, "1700000000"}, {13, "500"}, {14, "1000"}});
  std::string values;
  for (int i = 1; i <= kParameters; ++i) {
    const auto value = given.find(i);
    values += (i > 1 ? ", " : "") + (value == given.end() ? std::string("NULL") : value->second);
  }
  const auto lease = co_await rig.pool().acquire(soon());
  co_await lease->execute_script(
      fmt::format("SET plan_cache_mode = force_custom_plan; DEALLOCATE ALL; PREPARE search AS {}",
                  sql::kSearchDocuments.sql),
      soon());
  const auto explain = fmt::format("EXPLAIN (ANALYZE, BUFFERS) EXECUTE search ({})", values);
  const auto rows = co_await lease->query({"", explain}, {}, soon());
  std::string plan;
  for (const auto& row : rows) plan += row.get<std::string>(0) + "\n";
  lease->close();  // it has settings of its own
  co_return plan;
}

// Those of the whole plan stand first.
int blocks_of(const std::string& plan) {
  const std::regex line("Buffers: shared( hit=([0-9]+))?( read=([0-9]+))?");
  std::smatch found;
  if (!std::regex_search(plan, found, line)) throw std::runtime_error("a plan without buffers:\n" + plan);
  const auto number = [&](std::size_t group) { return found[group].matched ? std::stoi(found[group]) : 0; };
  return number(2) + number(4);
}

TEST_F(IndexTest, AFrequentWordWithinSomethingRareIsNotReadWhole) {
  fill(rig_);
  const auto tag = rig_.one(
      "SELECT t FROM cn_search.post_search_documents, unnest(tags) t GROUP BY t HAVING count(*) = 40");
  const std::vector<std::pair<std::string, std::map<int, std::string>>> queries{
      {"topic", {{2, "ARRAY['rare']"}}},
      {"kind", {{3, "ARRAY[30023]"}}},
      {"author", {{4, "ARRAY[repeat('b', 64)]"}}},
      {"authors", {{4, "ARRAY[repeat('b', 64), repeat('c', 64)]"}}},
      {"times", {{5, "1700000000 - 200"}, {6, "1700000000 - 100"}}},
      {"ids", {{16, "ARRAY[encode(sha256('5'), 'hex'), encode(sha256('6'), 'hex')]"}}},
      {"tag", {{17, fmt::format("ARRAY[{}]", tag)}}},
  };
  for (const auto& [name, given] : queries) {
    const auto plan = run_task([&]() -> Task<std::string> { co_return co_await plan_of(rig_, given); });
    EXPECT_EQ(plan.find("Seq Scan on post_search_documents"), std::string::npos) << name << '\n' << plan;
    EXPECT_LE(blocks_of(plan), kBlocksMax) << name << '\n' << plan;
  }
}

}  // namespace
}  // namespace todoke::index
