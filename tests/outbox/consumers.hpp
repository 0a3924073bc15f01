// Consumers for tests. What they do stands in tables of the test's database (support.cpp makes them).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "outbox/consumer.hpp"

namespace todoke::test {

// Writes a row into `effects` for each row that it gets: what is done twice stands there twice.
class Recorder : public outbox::Consumer {
 public:
  struct Options {
    bool mandatory = false;
    bool wants_events = true;
    std::optional<outbox::Once> once = {};  // effects only for what claim() gives
  };
  explicit Recorder(std::string name) : Recorder(std::move(name), Options()) {}
  Recorder(std::string name, Options options) : name_(std::move(name)), options_(options) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool mandatory() const override { return options_.mandatory; }
  [[nodiscard]] bool wants_events() const override { return options_.wants_events; }
  Task<void> apply(outbox::Work work) override;
  Task<void> rebuild(pg::Pool& pool, Progress progress) override;
  Task<void> swap(pg::Connection& connection, Deadline deadline) override;

  // Called on the consumer's loop with every batch, before its effects or after them (the offset has not
  // moved yet then). May throw, and may block.
  using Hook = std::function<void(const outbox::Work&)>;
  void before(Hook hook);
  void after(Hook hook);
  // Runs what it gives (nothing: an empty text) inside the transaction, before the effects.
  void also_run(std::function<std::string(const outbox::Work&)> sql);
  // Waits for the signal, whatever the deadline says.
  void wait_for(std::shared_ptr<Signal> signal);

  // How many rows each call so far had.
  [[nodiscard]] std::vector<std::size_t> batches() const;

 private:
  struct Hooks {
    Hook before;
    Hook after;
    std::function<std::string(const outbox::Work&)> sql;
    std::shared_ptr<Signal> signal;
  };
  Hooks hooks();

  const std::string name_;
  const Options options_;
  mutable std::mutex mutex_;
  Hooks hooks_;
  std::vector<std::size_t> batches_;
};

// Keeps the ids of the events in effect in a table of its own name, which a rebuild makes anew beside the old
// one.
class Mirror final : public outbox::Consumer {
 public:
  explicit Mirror(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  Task<void> apply(outbox::Work work) override;
  Task<void> rebuild(pg::Pool& pool, Progress progress) override;
  Task<void> swap(pg::Connection& connection, Deadline deadline) override;

  // What a rebuild waits for after its first page; null: nothing.
  std::shared_ptr<Signal> pause;
  // Called between two pages of a rebuild, and before the swap; may throw, and may block.
  std::function<void()> between_pages = [] {};
  std::function<void()> before_swap = [] {};

 private:
  const std::string name_;
};

// Whether a batch holds that row.
bool has_seq(const outbox::Work& work, std::int64_t seq);

}  // namespace todoke::test
