#include "relay/import.hpp"

#include <utility>

#include "relay/settings.hpp"

namespace todoke::relay {
namespace {

// An import waits out a restart of the database.
constexpr std::chrono::minutes kImportPatience(1);
constexpr BatchLimits kImportBatch{.events_max = 512, .rows_max = 5'000};
constexpr std::string_view kEphemeralText = "ephemeral: such events are not stored";

nostr::RuleSettings import_rules(const Config& config) {
  auto rules = rules_from(config);
  rules.past_max.reset();
  return rules;
}

WriterOptions import_writer(pg::ConnectOptions database) {
  WriterOptions options;
  options.connect = std::move(database);
  options.batch = kImportBatch;
  options.patience = kImportPatience;
  return options;
}

}  // namespace

Import::Import(const ImportParts& parts)
    : clock_(parts.clock),
      checks_signatures_(parts.checks_signatures),
      source_(parts.source),
      rules_(import_rules(parts.config)),
      limits_(message_limits_from(parts.config).event),
      metrics_(parts.metrics),
      duplicates_(parts.metrics),
      topics_(parts.executor, topic_settings_from(parts.config), parts.pool, parts.listener, parts.metrics),
      blocks_(parts.executor, parts.pool, parts.listener, parts.metrics),
      keys_(parts.executor, parts.pool, parts.listener, parts.metrics),
      writer_(parts.executor, import_writer(parts.database), parts.clock, metrics_, duplicates_, topics_,
              *this, log_, parts.storage),
      room_(parts.executor),
      topics_over_(parts.executor),
      blocks_over_(parts.executor),
      keys_over_(parts.executor),
      writer_over_(parts.executor) {}

Import::~Import() = default;

Task<void> Import::start() {
  co_await topics_.start();
  co_await blocks_.start();
  co_await keys_.start();
  co_await writer_.start();
  spawn(room_.executor(), topics_.run(), [this](const std::exception_ptr&) { topics_over_.set(); });
  spawn(room_.executor(), blocks_.run(), [this](const std::exception_ptr&) { blocks_over_.set(); });
  spawn(room_.executor(), keys_.run(), [this](const std::exception_ptr&) { keys_over_.set(); });
  spawn(room_.executor(), writer_.run(), [this](const std::exception_ptr& failure) {
    writer_failure_ = failure;
    writer_over_.set();
    room_.set();
  });
}

tl::expected<Incoming, std::string_view> Import::check(std::string_view text) const {
  auto event = nostr::parse_event(text, limits_);
  if (!event) return tl::unexpected(text_of(event.error().reason));
  const nostr::Sender operator_of_node{{}, true};
  const auto topics = topics_.topics();
  const auto blocks = blocks_.blocks();
  auto admitted = admit(std::make_shared<const nostr::Event>(std::move(*event)), source_, operator_of_node,
                        rules_, *blocks, *keys_.keys(), *topics, none_, seconds_of(clock_.now()),
                        checks_signatures_ ? Signatures::checked : Signatures::trusted);
  if (!admitted) return tl::unexpected(text_of(admitted.error()));
  if (admitted->ephemeral) return tl::unexpected(kEphemeralText);
  return std::move(admitted->incoming);
}

Task<void> Import::offer(Incoming incoming) {
  room_.reset();
  const bool has_room = writer_.offer(std::move(incoming), [this] { room_.set_from_anywhere(); });
  if (!has_room && !writer_over_.is_set()) co_await room_.wait();
  if (writer_failure_) std::rethrow_exception(writer_failure_);
}

Task<void> Import::finish() {
  writer_.stop();
  topics_.stop();
  blocks_.stop();
  keys_.stop();
  co_await writer_over_.wait();
  co_await topics_over_.wait();
  co_await blocks_over_.wait();
  co_await keys_over_.wait();
  if (writer_failure_) std::rethrow_exception(writer_failure_);
}

}  // namespace todoke::relay
