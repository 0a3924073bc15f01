#include "pg/retry.hpp"

#include <gtest/gtest.h>

#include "pg/error.hpp"

namespace todoke::pg {
namespace {

std::exception_ptr refused(std::string sqlstate) {
  Error::Fields fields;
  fields.sqlstate = std::move(sqlstate);
  return std::make_exception_ptr(Error(fields));
}

TEST(IsRetryable, OnlyWhatAnotherTryMayHelp) {
  const RetryPolicy policy;
  EXPECT_TRUE(is_retryable(refused("40001"), policy));
  EXPECT_TRUE(is_retryable(refused("40P01"), policy));
  EXPECT_TRUE(is_retryable(refused("55P03"), policy));
  EXPECT_FALSE(is_retryable(refused("23505"), policy));
  EXPECT_TRUE(is_retryable(std::make_exception_ptr(ConnectionLost("gone")), policy));
  EXPECT_FALSE(is_retryable(std::make_exception_ptr(DeadlineExceeded("late")), policy));
  EXPECT_FALSE(is_retryable(std::make_exception_ptr(std::runtime_error("other")), policy));
}

TEST(IsRetryable, AnUnknownCommitOnlyOnRequest) {
  const auto unknown = std::make_exception_ptr(CommitOutcomeUnknown("no answer"));
  EXPECT_FALSE(is_retryable(unknown, RetryPolicy{}));
  EXPECT_TRUE(is_retryable(unknown, RetryPolicy{.retry_unknown_commit = true}));
}

}  // namespace
}  // namespace todoke::pg
