#include "outbox/failure.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "outbox/consumer.hpp"
#include "pg/error.hpp"

namespace todoke::outbox {
namespace {

std::string text_of(const std::string& said) {
  return failure_text(std::make_exception_ptr(std::runtime_error(said)));
}

bool with_state(const std::string& sqlstate) {
  pg::Error::Fields fields;
  fields.sqlstate = sqlstate;
  return is_about_everything(std::make_exception_ptr(pg::Error(fields)));
}

TEST(Failure, TheDatabaseAsAWholeIsAboutEverything) {
  EXPECT_TRUE(is_about_everything(std::make_exception_ptr(pg::ConnectionLost("gone"))));
  EXPECT_TRUE(is_about_everything(std::make_exception_ptr(pg::PoolTimeout("none free"))));
  EXPECT_TRUE(is_about_everything(std::make_exception_ptr(pg::CommitOutcomeUnknown("who knows"))));
  EXPECT_TRUE(with_state("53100"));  // disk full
  EXPECT_TRUE(with_state("53300"));  // too many connections
  EXPECT_TRUE(with_state("57P01"));  // shutting down
  EXPECT_TRUE(with_state("25006"));  // a standby
}

TEST(Failure, WhatTheConsumerSaysIsAboutEverythingIs) {
  EXPECT_TRUE(is_about_everything(std::make_exception_ptr(NotNow("the other end is away"))));
}

TEST(Failure, WhatOneRowMayHaveCausedIsNot) {
  EXPECT_FALSE(is_about_everything(std::make_exception_ptr(std::runtime_error("poison"))));
  EXPECT_FALSE(is_about_everything(std::make_exception_ptr(pg::DeadlineExceeded("too slow"))));
  EXPECT_FALSE(with_state("22P02"));
  EXPECT_FALSE(with_state("57014"));  // a statement was cancelled
  EXPECT_FALSE(with_state("40P01"));
}

TEST(Failure, TextThatPostgresTakesIsWrittenDownAsItIs) {
  EXPECT_EQ(text_of("plain"), "plain");
  EXPECT_EQ(text_of("日本語 é 😀"), "日本語 é 😀");
}

TEST(Failure, BytesThatAreNoUtf8BecomeQuestionMarks) {
  EXPECT_EQ(text_of("a\xFF"
                    "b"),
            "a?b");
  EXPECT_EQ(text_of("\xC0\x80"), "??");            // overlong
  EXPECT_EQ(text_of("\xE0\x80\x80"), "???");       // overlong
  EXPECT_EQ(text_of("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(text_of("\xF4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(text_of("\xF5\x80\x80\x80"), "????");
  EXPECT_EQ(text_of("cut \xE6\x97"), "cut ??");
}

TEST(Failure, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(text_of(std::string(2'000, 'x')), std::string(1'000, 'x'));
  EXPECT_EQ(text_of(std::string(998, 'x') + "日本"), std::string(998, 'x'));
  EXPECT_EQ(text_of(std::string(997, 'x') + "日本"), std::string(997, 'x') + "日");
}

}  // namespace
}  // namespace todoke::outbox
