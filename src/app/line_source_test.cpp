#include "app/line_source.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace todoke::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kWait(10);

class LineSourceTest : public testing::Test {
 protected:
  LineSourceTest() {
    std::array<char, 32> pattern{"/tmp/todoke-lines-XXXXXX"};
    folder_ = mkdtemp(pattern.data());
  }
  ~LineSourceTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& bytes) const {
    const auto path = (folder_ / "lines").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// number:text of every line.
std::vector<std::string> lines_of(LineSource& source, std::size_t at_once = 100) {
  std::vector<std::string> all;
  while (!source.ended()) {
    for (const auto& line : source.read(at_once, kWait)) {
      all.push_back(std::to_string(line.number) + (line.too_long ? "!" : ":") + line.text);
    }
  }
  return all;
}

TEST_F(LineSourceTest, LinesComeWithTheirNumbersAndBlankOnesOnlyCount) {
  LineSource source(file("one\r\n\n  \ntwo\nthree"));
  EXPECT_THAT(lines_of(source), ElementsAre("1:one", "4:two", "5:three"));
  LineSource singly(file("a\nb\nc\n"));
  EXPECT_THAT(lines_of(singly, 1), ElementsAre("1:a", "2:b", "3:c"));
  LineSource nothing(file(""));
  EXPECT_THAT(lines_of(nothing), ElementsAre());
}

TEST_F(LineSourceTest, GzipAndZstdAreFoundByTheirFirstBytesAlsoSeveralStreamsInOneFile) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 1; i <= 30'000; ++i) {
    text += "line " + std::to_string(i) + "\n";
    expected.push_back(std::to_string(i) + ":line " + std::to_string(i));
  }
  const auto half = text.find('\n', text.size() / 2) - 3;
  for (auto* pack : {gzip, zstd}) {
    LineSource whole(file(pack(text)));
    EXPECT_EQ(lines_of(whole, 1'000), expected);
    EXPECT_EQ(whole.bytes_read(), whole.bytes_total());
    LineSource parts(file(pack(text.substr(0, half)) + pack(text.substr(half))));
    EXPECT_EQ(lines_of(parts), expected);
  }
}

TEST_F(LineSourceTest, ALineThatIsTooLongIsSkippedAndTold) {
  LineSource source(file("a\n" + std::string(3 * LineSource::kLineBytesMax, 'x') + "\nb\n" +
                         std::string(LineSource::kLineBytesMax + 1, 'x')));
  EXPECT_THAT(lines_of(source), ElementsAre("1:a", "2!", "3:b", "4!"));
}

TEST_F(LineSourceTest, AFileThatIsCutOffGivesItsLinesAndThenSaysSo) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7'919) + "\n";
  for (auto* pack : {gzip, zstd}) {
    const auto packed = pack(text);
    LineSource source(file(packed.substr(0, packed.size() / 2)));
    std::size_t lines = 0;
    std::string said;
    try {
      while (!source.ended()) lines += source.read(1'000, kWait).size();
    } catch (const UserError& error) {
      said = error.what();
    }
    EXPECT_GT(lines, 1'000U);
    EXPECT_THAT(said, HasSubstr("is cut off after line " + std::to_string(lines)));
  }
  auto broken = gzip(text);
  broken.replace(broken.size() / 2, 200, std::string(200, '\xff'));
  LineSource source(file(broken));
  EXPECT_THROW(lines_of(source), UserError);
}

TEST_F(LineSourceTest, AFileThatIsNotThereIsSaid) {
  EXPECT_THROW(LineSource(folder_ / "none"), UserError);
}

}  // namespace
}  // namespace todoke::app
