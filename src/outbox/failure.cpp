#include "outbox/failure.hpp"

#include "base/error.hpp"
#include "outbox/consumer.hpp"
#include "pg/error.hpp"
#include "pg/storable_text.hpp"

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
  return pg::storable_text(describe(failure), kTextBytesMax);
}

}  // namespace todoke::outbox
