#include "outbox/failure.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "outbox/consumer.hpp"
#include "pg/error.hpp"

namespace todoke::outbox {
namespace {

constexpr std::size_t kTextBytesMax = 1'000;

// How many bytes the sequence at the start of `text` has, or 0 when it is none of UTF-8 (RFC 3629).
std::size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return lead == 0 ? 0 : 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  const bool continues = std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length),
                                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; });
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return continues && !is_overlong && !is_outside ? length : 0;
}

}  // namespace

bool is_about_everything(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const NotNow&) {
    return true;
  } catch (const pg::ConnectionLost&) {
    return true;
  } catch (const pg::PoolTimeout&) {
    return true;
  } catch (const pg::CommitOutcomeUnknown&) {
    return true;
  } catch (const pg::Error& error) {
    // 53: resources, 57P: shutting down, 25006: a standby.
    return error.sqlstate().starts_with("53") || error.sqlstate().starts_with("57P") ||
           error.is_read_only_transaction();
  } catch (...) {
    return false;
  }
}

std::string failure_text(const std::exception_ptr& failure) {
  const auto said = describe(failure);
  std::string_view rest(said);
  std::string text;
  while (!rest.empty()) {
    const auto length = sequence_length(rest);
    if (text.size() + std::max<std::size_t>(length, 1) > kTextBytesMax) break;
    if (length == 0) text.push_back('?');
    text.append(rest.substr(0, length));
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace todoke::outbox
