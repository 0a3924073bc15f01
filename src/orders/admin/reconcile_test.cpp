#include "orders/admin/reconcile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FindOutcome has(std::int64_t qty) {
  FindOutcome outcome;
  outcome.answer = FindAnswer::found;
  outcome.result.status = ExecStatus::ok;
  outcome.result.executed_qty = Decimal(qty);
  return outcome;
}

FindOutcome answer(FindAnswer answer, std::string message = "") {
  FindOutcome outcome;
  outcome.answer = answer;
  outcome.message = std::move(message);
  return outcome;
}

OrderBooks success() {
  OrderBooks books;
  books.succeeded = true;
  books.ledger_status = "succeeded";
  books.executed_qty = Decimal(2);
  books.journal_has_success = true;
  books.broker = has(2);
  return books;
}

OrderBooks aborted() {
  OrderBooks books;
  books.ledger_status = "failed";
  books.broker = answer(FindAnswer::not_found);
  return books;
}

TEST(Reconcile, BooksThatAgreeHaveNoDifference) {
  EXPECT_THAT(differences(success()), IsEmpty());
  EXPECT_THAT(differences(aborted()), IsEmpty());
}

TEST(Reconcile, OutboxAndLedgerMustEndAlike) {
  auto books = success();
  books.ledger_status = "failed";
  EXPECT_THAT(differences(books), ElementsAre("the outbox says succeeded, the ledger failed"));
  books.ledger_status.reset();
  EXPECT_THAT(differences(books), ElementsAre("the outbox says succeeded, the ledger nothing"));
  books.ledger_may_be_gone = true;
  EXPECT_THAT(differences(books), IsEmpty());
  books = aborted();
  books.ledger_status = "succeeded";
  EXPECT_THAT(differences(books), ElementsAre("the outbox says aborted, the ledger succeeded"));
  books.is_conflict = true;
  EXPECT_THAT(differences(books), IsEmpty()) << "the ledger belongs to the other content";
}

TEST(Reconcile, TheJournalMustKnowOfASuccessUnlessAPersonSettledIt) {
  auto books = success();
  books.journal_has_success = false;
  EXPECT_THAT(differences(books), ElementsAre("it succeeded, but no try in the journal did"));
  books.settled_by_hand = true;
  EXPECT_THAT(differences(books), IsEmpty());
  books = aborted();
  books.journal_has_success = true;
  EXPECT_THAT(differences(books), ElementsAre("it is aborted, but a try in the journal succeeded"));
}

TEST(Reconcile, TheBrokerMustHaveWhatSucceededAndNothingElse) {
  auto books = success();
  books.broker = answer(FindAnswer::not_found);
  EXPECT_THAT(differences(books), ElementsAre("here it succeeded; the broker does not have it"));
  books.broker = has(1);
  EXPECT_THAT(differences(books), ElementsAre("the ledger has executed_qty 2, the broker 1"));
  books.broker = answer(FindAnswer::unknown, "down");
  EXPECT_THAT(differences(books), ElementsAre("what the broker has is not known: down"));
  books.broker.reset();
  EXPECT_THAT(differences(books), IsEmpty());
  books = aborted();
  books.broker = has(2);
  EXPECT_THAT(differences(books), ElementsAre("the broker has it, executed 2; here it is aborted"));
}

}  // namespace
}  // namespace todoke::orders
