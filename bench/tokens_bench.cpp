// How to make tokens of text without spaces: ICU's dictionary words against pairs of characters, on the same
// posts, whose words are known. For each: what is found (precision and recall for words of two characters,
// precision for compounds), tokens/s, and rate and size of the table that holds them, as tsvector with
// positions, tsvector without, and text[].
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <unicode/brkiter.h>
#include <unicode/unistr.h>
#include <vector>

#include <fmt/format.h>

#include "embedded_bench.hpp"
#include "index/tokens.hpp"
#include "pg/connection.hpp"
#include "search_text/generate.hpp"

namespace todoke::bench {
namespace {

constexpr std::size_t kPosts = 10'000;
constexpr std::size_t kNewWords = 200;
constexpr std::size_t kBatch = 1'000;
constexpr std::size_t kCharacters = 100;
constexpr std::uint64_t kSeed = 7;

using Tokens = std::vector<std::string>;

class DictionaryWords {
 public:
  DictionaryWords() {
    auto status = U_ZERO_ERROR;
    iterator_.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
    if (U_FAILURE(status)) throw std::runtime_error(u_errorName(status));
  }
  Tokens operator()(std::string_view text) const {
    const auto wide = icu::UnicodeString::fromUTF8(index::normal_text(text));
    iterator_->setText(wide);
    Tokens tokens;
    auto from = iterator_->first();
    for (auto to = iterator_->next(); to != icu::BreakIterator::DONE; from = to, to = iterator_->next()) {
      if (iterator_->getRuleStatus() == UBRK_WORD_NONE) continue;
      wide.tempSubStringBetween(from, to).toUTF8String(tokens.emplace_back());
    }
    return tokens;
  }
  Tokens query(std::string_view text) const { return (*this)(text); }

 private:
  std::unique_ptr<icu::BreakIterator> iterator_;
};

class Pairs {
 public:
  Tokens operator()(std::string_view text) const { return take(text, true); }
  Tokens query(std::string_view text) const { return take(text, false); }

 private:
  static Tokens take(std::string_view text, bool all) {
    const auto normal = index::normal_text(text);
    Tokens tokens;
    for (const auto& token : index::tokens_of(normal)) {
      if (all || token.kind != index::TokenKind::last) {
        tokens.emplace_back(index::text_of(token, normal));
      }
    }
    return tokens;
  }
};

enum class Store { positions, plain, array };

std::string as_stored(const Tokens& tokens, Store store) {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += store == Store::array ? "," : " ";
    out += store == Store::array ? fmt::format("\"{}\"", tokens[i]) : fmt::format("'{}'", tokens[i]);
    if (store == Store::positions) out += fmt::format(":{}", i + 1);
  }
  return store == Store::array ? "{" + out + "}" : out;
}

std::string condition(const Tokens& tokens, Store store) {
  if (store == Store::array) return fmt::format("tokens @> '{}'::text[]", as_stored(tokens, store));
  std::string query;
  for (const auto& token : tokens) {
    if (!query.empty()) query += store == Store::positions ? " <-> " : " & ";
    query += "''" + token + "''";
  }
  return fmt::format("tokens @@ '{}'::tsquery", query);
}

struct Found {
  double right = 0;
  double wrong = 0;
  double missed = 0;
  double seconds = 0;
  double queries = 0;
  [[nodiscard]] double precision() const { return right + wrong > 0 ? 100 * right / (right + wrong) : 100; }
  [[nodiscard]] double recall() const { return right + missed > 0 ? 100 * right / (right + missed) : 100; }
};

Task<std::vector<std::size_t>> ids_of(pg::Connection& connection, std::string sql) {
  const auto rows = co_await connection.query({"", sql}, {}, soon());
  std::vector<std::size_t> ids;
  for (const auto& row : rows) ids.push_back(static_cast<std::size_t>(row.get<std::int64_t>(0)));
  co_return ids;
}

struct Sizes {
  double table;
  double index;
};
Task<Sizes> sizes_of_bench(pg::Connection& connection) {
  constexpr pg::Statement kSizes{"sizes",
                                 "SELECT pg_table_size('bench')::float8, pg_indexes_size('bench')::float8"};
  const auto rows = co_await connection.query(kSizes, {}, soon());
  co_return Sizes{rows.one().get<double>(0), rows.one().get<double>(1)};
}

template <class Tokenise>
Task<Found> search_all(pg::Connection& connection, const Tokenise& tokenise, Store store,
                       const std::vector<Post>& posts, const std::vector<std::string>& words) {
  Found found;
  for (const auto& word : words) {
    const auto sql = fmt::format("SELECT id FROM bench WHERE {}", condition(tokenise.query(word), store));
    const auto began = std::chrono::steady_clock::now();
    const auto ids = co_await ids_of(connection, sql);
    found.seconds += seconds_since(began);
    ++found.queries;
    const auto right = static_cast<double>(std::count_if(
        ids.begin(), ids.end(), [&](std::size_t id) { return posts[id].words.contains(word); }));
    const auto relevant = std::count_if(posts.begin(), posts.end(),
                                        [&](const Post& post) { return post.words.contains(word); });
    found.right += right;
    found.wrong += static_cast<double>(ids.size()) - right;
    found.missed += static_cast<double>(relevant) - right;
  }
  co_return found;
}

template <class Tokenise>
Task<void> measure(pg::Connection& connection, std::string name, Store store, const PostGenerator& generator,
                   const std::vector<Post>& posts) {
  const Tokenise tokenise;
  auto began = std::chrono::steady_clock::now();
  std::size_t tokens = 0;
  std::vector<std::string> stored;
  for (const auto& post : posts) tokens += tokenise(post.text).size();
  const double tokenise_seconds = seconds_since(began);
  for (const auto& post : posts) stored.push_back(as_stored(tokenise(post.text), store));

  const std::string type = store == Store::array ? "text[]" : "tsvector";
  co_await connection.execute_script(
      fmt::format("DROP TABLE IF EXISTS bench; CREATE TABLE bench (id bigint, tokens {}); "
                  "CREATE INDEX ON bench USING gin (tokens)",
                  type),
      soon());
  const auto insert = fmt::format(
      "INSERT INTO bench SELECT i, t::{} FROM unnest($1::bigint[], $2::text[]) AS k (i, t)", type);
  began = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < posts.size(); at += kBatch) {
    std::vector<std::int64_t> ids;
    std::vector<std::string_view> texts;
    for (auto i = at; i < std::min(at + kBatch, posts.size()); ++i) {
      ids.push_back(static_cast<std::int64_t>(i));
      texts.emplace_back(stored[i]);
    }
    pg::Params params(ids, texts);
    co_await connection.query({"", insert}, std::move(params), soon());
  }
  const double load_seconds = seconds_since(began);
  co_await connection.execute_script("VACUUM ANALYZE bench", soon());
  // Without the list of entries that wait: its pages stay.
  co_await connection.execute_script("REINDEX TABLE bench", soon());
  const auto sizes = co_await sizes_of_bench(connection);
  const auto count = static_cast<double>(posts.size());
  const auto words = co_await search_all(connection, tokenise, store, posts, generator.two_characters());
  const auto fresh = co_await search_all(connection, tokenise, store, posts, generator.new_words(kNewWords));
  const auto compounds = co_await search_all(connection, tokenise, store, posts, generator.compounds());
  std::fputs(fmt::format("{:<32} {:>7.0f} {:>6.1f} {:>8.0f} {:>6.0f} {:>6.0f} {:>7.1f} {:>7.1f} {:>7.1f} "
                         "{:>7.1f} {:>7.1f} {:>7.2f}\n",
                         name, count / tokenise_seconds / 1000, static_cast<double>(tokens) / count,
                         count / load_seconds, sizes.table / count, sizes.index / count, words.precision(),
                         words.recall(), fresh.recall(), compounds.precision(), compounds.recall(),
                         1000 * words.seconds / words.queries)
                 .c_str(),
             stdout);
}

Task<void> measure_all(embedded::Postgres& server) {
  pg::ConnectOptions options;
  options.url = server.connection_string();
  const auto connection = co_await pg::Connection::connect(options, soon());
  std::fputs(
      fmt::format("{:<32} {:>7} {:>6} {:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "", "tokens.",
                  "tokens", "loaded", "table", "index", "2-char", "2-char", "new", "comp.", "comp.", "query")
          .c_str(),
      stdout);
  std::fputs(fmt::format("{:<32} {:>7} {:>6} {:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "",
                         "kposts/s", "/post", "posts/s", "B/post", "B/post", "prec.%", "recall%", "recall%",
                         "prec.%", "recall%", "ms")
                 .c_str(),
             stdout);
  for (const auto language : {Language::japanese, Language::chinese, Language::korean}) {
    PostGenerator generator(language, kSeed);
    std::vector<Post> posts;
    for (std::size_t i = 0; i < kPosts; ++i) posts.push_back(generator.next(kCharacters));
    const auto title = [&](std::string_view what) { return fmt::format("{} {}", name_of(language), what); };
    co_await measure<DictionaryWords>(*connection, title("words, positions"), Store::positions, generator,
                                      posts);
    co_await measure<Pairs>(*connection, title("pairs, positions"), Store::positions, generator, posts);
    co_await measure<Pairs>(*connection, title("pairs, no positions"), Store::plain, generator, posts);
    co_await measure<Pairs>(*connection, title("pairs, text[]"), Store::array, generator, posts);
  }
}

}  // namespace
}  // namespace todoke::bench

int main() {
  return todoke::bench::run_on_embedded(todoke::bench::measure_all);
}
