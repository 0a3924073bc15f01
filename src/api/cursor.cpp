#include "api/cursor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace todoke::api {

std::string cursor_of(const std::vector<std::string>& values) {
  return to_base64(as_bytes(fmt::format("{}", fmt::join(values, "\n"))), Base64::url);
}

std::optional<std::vector<std::string>> values_of_cursor(std::string_view cursor, std::size_t count) {
  const auto text = from_base64(cursor, Base64::url);
  if (!text || !is_utf8(*text) || text->find('\0') != std::string::npos) return std::nullopt;
  std::vector<std::string> values;
  std::string_view rest = *text;
  while (values.size() < count && !rest.empty()) values.emplace_back(cut_until(rest, '\n'));
  if (values.size() != count || !rest.empty()) return std::nullopt;
  return values;
}

}  // namespace todoke::api
