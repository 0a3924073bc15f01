// Any bytes as a text to be found, as what is looked for, as a cursor and as tags: the tokens lie inside the
// text, one after the other, and are UTF-8; a query is what Postgres reads as a tsquery; a cursor that is
// taken is the same when it is written and read again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "index/document_tags.hpp"
#include "index/search_cursor.hpp"
#include "index/text_query.hpp"
#include "index/tokens.hpp"
#include "index/ts_vector.hpp"
#include "require.hpp"

namespace {

using namespace todoke::index;
using todoke::fuzz::require;

void texts(std::string_view text) {
  const auto normal = normal_text(text);
  if (todoke::is_utf8(text)) require(normal_text(normal) == normal);
  const auto tokens = tokens_of(normal);
  require(tokens.size() <= kTokensMax);
  std::size_t start = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& token = tokens[i];
    require(token.size > 0 && token.size <= kWordBytesMax && token.position == i + 1);
    require(token.offset >= start && token.offset + token.size <= normal.size());
    require(todoke::is_utf8(text_of(token, normal)));
    start = token.offset;
  }
  TsVectorBuilder vector;
  vector.add(text, Weight::title);
  vector.add(text, Weight::body);
  require(vector.tokens() <= kTokensMax);
  require(!vector.build().bytes.empty());
}

// Quoted words without a quote or backslash in them; between them only what the room writes.
void require_tsquery(std::string_view query) {
  require(std::count(query.begin(), query.end(), '\'') % 2 == 0);
  require(std::count(query.begin(), query.end(), '(') == std::count(query.begin(), query.end(), ')'));
  require(query.find('\\') == std::string_view::npos && query.find('\0') == std::string_view::npos);
  bool quoted = false;
  for (const char c : query) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted) {
      require(std::string_view("() &<>:*0123456789").find(c) != std::string_view::npos);
    }
  }
}

void queries(std::string_view text) {
  const auto query = parse_text_query(text);
  if (!query) {
    require(!query.error().message.empty());
    return;
  }
  require(text.size() <= kQueryBytesMax);
  require((query->finds == TextQuery::Finds::tokens) == !query->tsquery.empty());
  require_tsquery(query->tsquery);
}

void cursors(std::string_view text) {
  const auto cursor = parse_cursor(text);
  if (!cursor) return;
  require(cursor->as_of >= 0);
  require(parse_cursor(to_text(*cursor)) == cursor);
}

void tags(std::string_view text) {
  const auto read = read_document_tags(text);
  require(std::is_sorted(read.numbers.begin(), read.numbers.end()));
  require(!read.scoped || may_have_tag(text, "scope") || text.find('\\') != std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  texts(text);
  queries(text);
  cursors(text);
  tags(text);
  return 0;
}
