// The metrics that a node exports are those that the docs explain.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using Names = std::set<std::string>;

Names exported_by(NodeProcess& node) {
  std::istringstream lines(http_get("http://" + node.internal_address() + "/metrics").body);
  Names names;
  const std::string type = "# TYPE ";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(type))
      names.insert(line.substr(type.size(), line.find(' ', type.size()) - type.size()));
  }
  return names;
}

// What stands in the first column of the tables whose head is `metric`.
void add_names_of(const std::filesystem::path& page, Names& names) {
  std::ifstream file(page);
  const std::regex name("`([a-z0-9_]+)(\\{[a-z,]*\\})?`");
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("|")) in_table = false;
    if (line.starts_with("| metric |")) in_table = true;
    const auto cell = line.substr(0, line.find(" | "));
    if (!in_table) continue;
    for (auto at = std::sregex_iterator(cell.begin(), cell.end(), name); at != std::sregex_iterator(); ++at)
      names.insert((*at)[1]);
  }
}

TEST(Metrics, AreExplainedInTheDocsAndNoOthersAre) {
  const TempFolder folder;
  // With the adapter that has metrics of its own. Nobody listens there: it has them all the same.
  TodokeRun node("admin,index,orders,relay,users", folder.path(),
                 {"--bootstrap.enabled", "on", "--outbox.enabled", "true", "--broker.adapter", "fix",
                  "--orders.fix.host", "127.0.0.1", "--orders.fix.port", "1", "--orders.fix.sender_comp_id",
                  "US", "--orders.fix.target_comp_id", "THEM"});
  node.wait_ready();
  Names explained;
  for (const auto& entry : std::filesystem::directory_iterator(TODOKE_DOCS)) {
    if (entry.path().extension() == ".md") add_names_of(entry.path(), explained);
  }
  EXPECT_EQ(explained, exported_by(node));
}

}  // namespace
}  // namespace todoke::test
