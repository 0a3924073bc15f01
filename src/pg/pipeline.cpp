// Several statements in one flush: Parse (where the connection does not know the statement yet), Bind,
// Execute … Sync.
#include <deque>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "pg/connection_state.hpp"

namespace todoke::pg {

namespace {

// Statements are literals of the program, a few hundred at most; what comes after that is parsed anew each
// time.
constexpr std::size_t kPreparedMax = 1000;
// libpq gives a null between the results of two commands; more in a row than this means that we are out of
// step with it.
constexpr int kNullsMax = 16;
constexpr int kBinary = 1;

// What libpq will answer, in this order.
struct Awaited {
  enum class Kind { prepare, execute, sync } kind;
  std::size_t step = 0;
  std::string key;  // of the prepared statement
};

struct Failure {
  Error::Fields fields;
  std::size_t step = 0;
};

struct Outcome {
  std::vector<Result> results;
  std::optional<Failure> failure;
  Io io = Io::ok;
  bool flushed = false;
  std::size_t reached = 0;  // the step whose answer was being read
};

struct LibpqParams {
  explicit LibpqParams(const Params& params) {
    for (const auto& value : params.values()) {
      oids.push_back(value.oid);
      values.push_back(params.data(value));
      lengths.push_back(static_cast<int>(value.length));
      formats.push_back(kBinary);
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(oids.size()); }
  std::vector<Oid> oids;
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
};

// The same text with parameters of other types is another prepared statement.
std::string key_of(const Statement& statement, const LibpqParams& params) {
  std::string key(statement.sql);
  for (const auto oid : params.oids) key += fmt::format("\n{}", oid);
  return key;
}

// False: libpq refused, which it does only when the connection is broken or memory is short.
bool send_step(Connection::State& state, const Step& step, std::size_t index, std::deque<Awaited>& expected) {
  const LibpqParams params(*step.params);
  auto key = key_of(step.statement, params);
  auto known = state.prepared.find(key);
  if (known == state.prepared.end()) {
    const std::string sql(step.statement.sql);
    if (state.prepared.size() >= kPreparedMax) {
      expected.push_back({Awaited::Kind::execute, index, {}});
      return PQsendQueryParams(state.conn, sql.c_str(), params.count(), params.oids.data(),
                               params.values.data(), params.lengths.data(), params.formats.data(),
                               kBinary) == 1;
    }
    const auto name = fmt::format("{}_{}", step.statement.name, ++state.prepared_count);
    expected.push_back({Awaited::Kind::prepare, index, key});
    if (PQsendPrepare(state.conn, name.c_str(), sql.c_str(), params.count(), params.oids.data()) != 1)
      return false;
    known = state.prepared.emplace(std::move(key), name).first;
  }
  expected.push_back({Awaited::Kind::execute, index, known->first});
  return PQsendQueryPrepared(state.conn, known->second.c_str(), params.count(), params.values.data(),
                             params.lengths.data(), params.formats.data(), kBinary) == 1;
}

bool send_steps(Connection::State& state, const std::vector<Step>& steps, std::deque<Awaited>& expected) {
  if (PQenterPipelineMode(state.conn) != 1) return false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!send_step(state, steps[i], i, expected)) return false;
  }
  expected.push_back({Awaited::Kind::sync, steps.empty() ? 0 : steps.size() - 1, {}});
  return PQpipelineSync(state.conn) == 1;
}

// A prepared statement that the server no longer takes: its tables changed, or somebody ran DEALLOCATE.
bool is_stale(const Error::Fields& fields) {
  return fields.sqlstate == "26000" ||
         (fields.sqlstate == "0A000" && fields.message.find("cached plan") == 0);
}

void note_answer(Connection::State& state, const Awaited& expected, const ResultPtr& answer,
                 Outcome& outcome) {
  switch (PQresultStatus(answer.get())) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
      if (expected.kind == Awaited::Kind::execute) outcome.results[expected.step] = Result(answer);
      return;
    case PGRES_PIPELINE_ABORTED:
      if (expected.kind == Awaited::Kind::prepare) state.prepared.erase(expected.key);
      return;
    case PGRES_FATAL_ERROR: {
      auto fields = error_fields(answer.get());
      if (expected.kind == Awaited::Kind::prepare) state.prepared.erase(expected.key);
      if (is_stale(fields)) state.retired = true;
      if (!outcome.failure) outcome.failure = Failure{std::move(fields), expected.step};
      return;
    }
    default:
      // COPY and the like in a pipeline: there is no way back into step.
      state.close();
      throw std::logic_error("a statement can't run in a pipeline; COPY has calls of its own");
  }
}

Task<Io> receive_answers(Connection::State& state, std::deque<Awaited>& expected, Outcome& outcome) {
  int nulls = 0;
  while (!expected.empty()) {
    outcome.reached = expected.front().step;
    ResultPtr answer;
    const auto io = co_await state.next_result(answer);
    if (io != Io::ok) co_return io;
    if (!answer) {
      if (++nulls > kNullsMax) co_return Io::lost;
      if (expected.front().kind != Awaited::Kind::sync) expected.pop_front();
      continue;
    }
    nulls = 0;
    if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) {
      expected.clear();
    } else {
      note_answer(state, expected.front(), answer, outcome);
    }
  }
  co_return PQexitPipelineMode(state.conn) == 1 ? Io::ok : Io::lost;
}

Task<Outcome> run_steps(Connection::State& state, const std::vector<Step>& steps) {
  Outcome outcome;
  outcome.results.resize(steps.size());
  std::deque<Awaited> expected;
  if (!send_steps(state, steps, expected)) {
    outcome.io = Io::lost;
    co_return outcome;
  }
  outcome.io = co_await state.flush();
  outcome.flushed = outcome.io == Io::ok;
  // Also after a failed flush: the server may have said why it hung up.
  if (outcome.io != Io::expired) {
    const auto io = co_await receive_answers(state, expected, outcome);
    if (outcome.io == Io::ok) outcome.io = io;
  }
  co_return outcome;
}

[[noreturn]] void throw_lost(Connection::State& state, const Outcome& outcome, const std::vector<Step>& steps,
                             std::optional<std::size_t> commit_at) {
  // The server's own farewell before it came to the COMMIT, or a COMMIT that never left: it did not commit.
  const bool before_commit = state.server_ended_it && commit_at && outcome.reached < *commit_at;
  if (commit_at && outcome.flushed && !before_commit) {
    const auto message =
        outcome.io == Io::expired ? std::string("the deadline passed") : state.last_message();
    state.close();
    throw CommitOutcomeUnknown(fmt::format("no answer to COMMIT: {}", message));
  }
  const auto name = steps.empty() ? "a batch" : steps[outcome.reached].statement.name;
  state.throw_bad(outcome.io, fmt::format("running {}", name));
}

}  // namespace

Task<std::vector<Result>> run_pipeline(Connection::State& state, std::vector<Step> steps,
                                       std::optional<std::size_t> commit_at) {
  auto outcome = co_await run_steps(state, steps);
  if (outcome.failure) {
    auto fields = std::move(outcome.failure->fields);
    if (outcome.io == Io::lost) state.close();
    if (state.cancelled && fields.sqlstate == "57014") {
      throw DeadlineExceeded(
          fmt::format("the deadline passed; {} was cancelled", steps[outcome.failure->step].statement.name));
    }
    fields.statement = steps[outcome.failure->step].statement.name;
    fields.index = outcome.failure->step;
    throw Error(std::move(fields));
  }
  if (outcome.io != Io::ok) throw_lost(state, outcome, steps, commit_at);
  co_return std::move(outcome.results);
}

}  // namespace todoke::pg
