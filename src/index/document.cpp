#include "index/document.hpp"

#include <unicode/uchar.h>
#include <utility>

#include "base/utf8.hpp"
#include "index/document_tags.hpp"

namespace todoke::index {
namespace {

constexpr std::int32_t kLongText = 30023;

// One line that can be shown and stored: control characters, line breaks too, are spaces.
std::string line(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto start = at;
    const auto c = next_character(text, at);
    if (out.size() + (at - start) > bytes_max) break;
    if (c < 0 || u_charType(c) == U_CONTROL_CHAR) {
      out.push_back(' ');
    } else {
      out.append(text.substr(start, at - start));
    }
  }
  return out;
}

}  // namespace

bool is_public_post(const outbox::LoggedEvent& event) {
  if (!event.effective || event.non_public || !is_indexed(event.kind)) return false;
  return !may_have_tag(event.tags_json, "scope") || !read_document_tags(event.tags_json).scoped;
}

Document document_of(std::string_view event_id, SystemTime ingested_at, const outbox::LoggedEvent& event) {
  Document document;
  document.event_id = event_id;
  document.pubkey = event.pubkey;
  document.kind = event.kind;
  document.created_at = event.created_at;
  document.ingested_at = ingested_at;
  document.topics = event.topics;
  TsVectorBuilder tokens;
  auto tags = read_document_tags(event.tags_json);
  document.tags = std::move(tags.numbers);
  if (event.kind == kLongText) {
    if (tags.title) {
      document.title = line(*tags.title, kTitleBytesMax);
      tokens.add(*tags.title, Weight::title);
    }
    if (tags.summary) {
      document.summary = line(*tags.summary, kSummaryBytesMax);
      tokens.add(*tags.summary, Weight::summary);
    }
  }
  tokens.add(event.content, Weight::body);
  document.tokens = tokens.build();
  return document;
}

}  // namespace todoke::index
