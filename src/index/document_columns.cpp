#include "index/document_columns.hpp"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace todoke::index {
namespace {

// No topic holds it: it is a control character.
constexpr char kTopicSeparator = '\x1f';

std::string joined(const std::vector<std::string>& topics) {
  std::string out;
  for (const auto& topic : topics) {
    if (!out.empty()) out.push_back(kTopicSeparator);
    out += topic;
  }
  return out;
}

std::string joined(const std::vector<std::int64_t>& tags) {
  return fmt::format("{}", fmt::join(tags, ","));
}

// Lets Params read one member of every document without a copy of the list.
template <class Get>
struct Column {
  std::span<const Document> documents;
  Get get;
  struct Iterator {
    const Document* at;
    const Get* get;
    decltype(auto) operator*() const { return std::invoke(*get, *at); }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at == other.at; }
  };
  [[nodiscard]] Iterator begin() const { return {documents.data(), &get}; }
  [[nodiscard]] Iterator end() const { return {documents.data() + documents.size(), &get}; }
  [[nodiscard]] std::size_t size() const { return documents.size(); }
};

}  // namespace

pg::Params columns_of(std::span<const Document> documents) {
  const auto column = [documents](auto get) { return Column<decltype(get)>{documents, get}; };
  pg::Params params;
  params.add(column(&Document::event_id));
  params.add(column(&Document::pubkey));
  params.add(column(&Document::kind));
  params.add(column(&Document::created_at));
  params.add(column(&Document::ingested_at));
  params.add(column([](const Document& document) { return joined(document.topics); }));
  params.add(column(&Document::tokens));
  params.add(column(&Document::title));
  params.add(column(&Document::summary));
  params.add(column([](const Document& document) { return joined(document.tags); }));
  return params;
}

}  // namespace todoke::index
