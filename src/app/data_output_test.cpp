#include "app/data_output.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/line_source.hpp"
#include "base/error.hpp"

namespace todoke::app {
namespace {

using testing::ElementsAre;

class FlushedOutput : public testing::TestWithParam<Packing> {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // Every whole line that a reader of the file gets, whether or not the file has its end.
  [[nodiscard]] std::vector<std::string> readable() const {
    std::vector<std::string> lines;
    LineSource source(path_);
    try {
      while (!source.ended()) {
        for (auto& line : source.read(100, std::chrono::milliseconds(0)))
          lines.push_back(std::move(line.text));
      }
    } catch (const UserError&) {
      // cut off
    }
    return lines;
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("todoke-data-output-" + std::to_string(getpid()) + "-" +
                                                 std::to_string(static_cast<int>(GetParam()))))
          .string();
};

TEST_P(FlushedOutput, CanBeUnpackedUpToItWithoutTheEnd) {
  DataOutput output(path_, GetParam());
  output.line("one");
  output.line("two");
  output.flush();
  EXPECT_THAT(readable(), ElementsAre("one", "two"));
  output.line("three");
  output.flush();
  EXPECT_THAT(readable(), ElementsAre("one", "two", "three"));
  output.finish();
  EXPECT_THAT(readable(), ElementsAre("one", "two", "three"));
}

INSTANTIATE_TEST_SUITE_P(Packings, FlushedOutput,
                         testing::Values(Packing::none, Packing::gzip, Packing::zstd));

}  // namespace
}  // namespace todoke::app
