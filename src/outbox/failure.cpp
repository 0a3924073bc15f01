#include "outbox/failure.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "outbox/consumer.hpp"
#include "pg/error.hpp"

namespace todoke::outbox {
namespace {

constexpr std::size_t kTextBytesMax = 1'000;

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
    const auto length = rest.front() == '\0' ? 0 : character_length(rest);
    if (text.size() + std::max<std::size_t>(length, 1) > kTextBytesMax) break;
    if (length == 0) text.push_back('?');
    text.append(rest.substr(0, length));
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace todoke::outbox
