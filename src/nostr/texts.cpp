#include "nostr/texts.hpp"

#include <array>

namespace todoke::nostr {
namespace {

using enum Reason;

constexpr auto kReasons = std::to_array<ReasonText>({
    {already_stored, "already_stored", "duplicate: already stored"},
    {newer_version_stored, "newer_version_stored", "duplicate: newer version stored"},
    {deleted_by_author, "deleted_by_author", "blocked: deleted by author"},
    {vanished, "vanished", "blocked: vanished by request"},
    {author_blocked, "author_blocked", "blocked: author not taken here"},
    {event_blocked, "event_blocked", "blocked: event not taken here"},
    {topic_blocked, "topic_blocked", "blocked: topic not taken here"},
    {address_blocked, "address_blocked", "blocked: address not served"},
    {policy_refused, "policy_refused", "blocked: not taken by the policy of this relay"},
    {policy_failed, "policy_failed", "error: policy did not decide, try again"},
    {topic_not_enabled, "topic_not_enabled", "restricted: topic not enabled"},
    {capacity, "capacity", "restricted: capacity"},
    {rate_limited, "rate_limited", "rate-limited: slow down"},
    {not_stored, "not_stored", "error: not stored, try again"},
    {storage_full, "storage_full", "error: storage full"},
    {too_old_for_topic, "too_old_for_topic", "restricted: created_at too old for the topic"},
    {no_backfill, "no_backfill", "restricted: no backfill"},
    {event_not_object, "event_not_object", "invalid: event must be an object"},
    {missing_member, "missing_member", "invalid: missing event member"},
    {duplicate_member, "duplicate_member", "invalid: duplicate event member"},
    {malformed_id, "malformed_id", "invalid: id must be 64 lower-case hex digits"},
    {malformed_pubkey, "malformed_pubkey", "invalid: pubkey must be 64 lower-case hex digits"},
    {malformed_created_at, "malformed_created_at", "invalid: created_at must be an integer"},
    {malformed_kind, "malformed_kind", "invalid: kind must be an integer from 0 to 65535"},
    {malformed_tags, "malformed_tags", "invalid: tags must be an array of arrays of strings"},
    {malformed_content, "malformed_content", "invalid: content must be a string"},
    {malformed_sig, "malformed_sig", "invalid: sig must be 128 lower-case hex digits"},
    {text_not_unicode, "text_not_unicode", "invalid: lone surrogate"},
    {event_too_large, "event_too_large", "invalid: event too large"},
    {too_many_tags, "too_many_tags", "invalid: too many tags"},
    {tag_too_long, "tag_too_long", "invalid: too many values in a tag"},
    {tags_too_large, "tags_too_large", "invalid: tags too large"},
    {bad_id, "bad_id", "invalid: bad id"},
    {bad_signature, "bad_signature", "invalid: bad signature"},
    {auth_kind, "auth_kind", "invalid: kind 22242 is for AUTH only"},
    {p2p_only, "p2p_only", "restricted: p2p only"},
    {vanish_elsewhere, "vanish_elsewhere", "restricted: request to vanish from other relays"},
    {created_at_out_of_range, "created_at_out_of_range", "invalid: created_at out of range"},
    {bad_expiration, "bad_expiration", "invalid: expiration must be an integer"},
    {expired, "expired", "invalid: expired"},
    {missing_topic, "missing_topic", "invalid: missing topic"},
    {missing_d, "missing_d", "invalid: missing d"},
    {missing_scope, "missing_scope", "invalid: missing scope"},
    {unknown_scope, "unknown_scope", "invalid: unknown scope"},
    {several_scopes, "several_scopes", "invalid: more than one scope"},
    {missing_epoch, "missing_epoch", "invalid: missing epoch"},
    {several_epochs, "several_epochs", "invalid: more than one epoch"},
    {epoch_not_integer, "epoch_not_integer", "invalid: epoch must be an integer"},
    {epoch_not_positive, "epoch_not_positive", "invalid: epoch must be positive"},
    {difficulty_too_low, "difficulty_too_low", "pow: difficulty too low"},
    {protected_needs_auth, "protected_needs_auth", "auth-required: protected event"},
    {protected_other_author, "protected_other_author", "restricted: protected event of another author"},
    {scope_needs_auth, "scope_needs_auth", "auth-required: non-public scope"},
    {k_not_kukuri, "k_not_kukuri", "invalid: k must be kukuri"},
    {ver_not_1, "ver_not_1", "invalid: ver must be 1"},
    {d_not_descriptor, "d_not_descriptor", "invalid: d must be descriptor"},
    {d_not_topic_service, "d_not_topic_service", "invalid: d must be topic_service:<topic>:<role>:<scope>"},
    {missing_role, "missing_role", "invalid: missing role"},
    {missing_exp, "missing_exp", "invalid: missing exp"},
    {missing_expiration, "missing_expiration", "invalid: missing expiration"},
    {missing_target, "missing_target", "invalid: missing target"},
    {bad_target, "bad_target", "invalid: target must be event:<id> or pubkey:<hex>"},
    {missing_reason, "missing_reason", "invalid: missing reason"},
    {unknown_reason, "unknown_reason", "invalid: unknown reason"},
    {missing_label, "missing_label", "invalid: missing label"},
    {unknown_label, "unknown_label", "invalid: unknown label"},
    {missing_policy_url, "missing_policy_url", "invalid: missing policy_url"},
    {missing_policy_ref, "missing_policy_ref", "invalid: missing policy_ref"},
    {bad_confidence, "bad_confidence", "invalid: confidence must be from 0 to 1"},
    {missing_claim, "missing_claim", "invalid: missing claim"},
    {missing_rank, "missing_rank", "invalid: missing rank"},
    {bad_rank, "bad_rank", "invalid: rank must be an integer from 0 to 100"},
    {missing_rank_provider, "missing_rank_provider", "invalid: missing <kind>:rank"},
    {content_not_object, "content_not_object", "invalid: content must be a JSON object"},
    {content_wrong_schema, "content_wrong_schema", "invalid: wrong content schema"},
    {content_missing_member, "content_missing_member", "invalid: missing content member"},
    {message_too_long, "message_too_long", "invalid: message too long"},
    {message_not_json, "message_not_json", "invalid: message is not JSON"},
    {message_binary, "message_binary", "invalid: message must be text, not binary"},
    {message_too_deep, "message_too_deep", "invalid: message too deep"},
    {message_not_array, "message_not_array", "invalid: message must be an array"},
    {unknown_verb, "unknown_verb", "invalid: unknown message type"},
    {missing_element, "missing_element", "invalid: missing message element"},
    {extra_element, "extra_element", "invalid: too many message elements"},
    {bad_subscription_id, "bad_subscription_id", "invalid: subscription id must be 1 to 64 characters"},
    {no_filters, "no_filters", "invalid: no filters"},
    {too_many_filters, "too_many_filters", "invalid: too many filters"},
    {filter_not_object, "filter_not_object", "invalid: filter must be an object"},
    {filter_duplicate_key, "filter_duplicate_key", "invalid: duplicate filter key"},
    {filter_unknown_key, "filter_unknown_key", "unsupported: unknown filter key"},
    {filter_too_many_values, "filter_too_many_values", "invalid: too many values in a filter"},
    {filter_too_many_tags, "filter_too_many_tags", "invalid: too many tag filters"},
    {filter_bad_ids, "filter_bad_ids", "invalid: ids must be 64 lower-case hex digits each"},
    {filter_bad_authors, "filter_bad_authors", "invalid: authors must be 64 lower-case hex digits each"},
    {filter_bad_kinds, "filter_bad_kinds", "invalid: kinds must be integers from 0 to 65535"},
    {filter_bad_tag_values, "filter_bad_tag_values", "invalid: tag filters must be arrays of strings"},
    {filter_bad_event_tag, "filter_bad_event_tag", "invalid: #e must be 64 lower-case hex digits each"},
    {filter_bad_pubkey_tag, "filter_bad_pubkey_tag", "invalid: #p must be 64 lower-case hex digits each"},
    {filter_bad_since, "filter_bad_since", "invalid: since must be an integer"},
    {filter_bad_until, "filter_bad_until", "invalid: until must be an integer"},
    {filter_bad_limit, "filter_bad_limit", "invalid: limit must be a non-negative integer"},
    {filter_bad_seq_after, "filter_bad_seq_after", "invalid: seq_after must be a non-negative integer"},
    {filter_bad_search, "filter_bad_search", "invalid: search must be a string"},
    {seq_after_differs, "seq_after_differs", "invalid: seq_after must be the same in all filters"},
    {search_unsupported, "search_unsupported", "unsupported: search"},
    {search_not_here, "search_not_here", "unsupported: search with COUNT or seq_after"},
    {search_refused, "search_refused", "invalid: search text too long or too complex"},
    {t_required, "t_required", "invalid: #t required"},
    {query_too_slow, "query_too_slow", "error: query too slow"},
    {query_failed, "query_failed", "error: query failed, try again"},
    {too_many_subscriptions, "too_many_subscriptions", "restricted: too many subscriptions"},
    {filters_too_large, "filters_too_large", "restricted: filters of open subscriptions too large"},
    {neg_bad_message, "neg_bad_message", "invalid: not a message of negentropy"},
    {neg_unsupported, "neg_unsupported", "unsupported: search or seq_after in NEG-OPEN"},
    {neg_too_many_events, "neg_too_many_events", "blocked: too many events, ask for less time at once"},
    {neg_too_many_open, "neg_too_many_open", "restricted: too many reconciliations"},
    {neg_not_open, "neg_not_open", "closed: no such reconciliation is waiting for a message"},
    {neg_too_slow, "neg_too_slow", "closed: you took too long to respond"},
    {not_auth_event, "not_auth_event", "invalid: not an auth event"},
    {wrong_challenge, "wrong_challenge", "invalid: wrong challenge"},
    {wrong_relay, "wrong_relay", "invalid: wrong relay"},
    {too_many_keys, "too_many_keys", "restricted: too many keys on one connection"},
    {auth_required, "auth_required", "auth-required: authenticate first"},
    {consent_required, "consent_required", "restricted: consent-required"},
    {subscription_required, "subscription_required", "restricted: subscription-required"},
    {account_disabled, "account_disabled", "restricted: account disabled"},
    {quota_exceeded, "quota_exceeded", "restricted: no more searches today"},
});

constexpr bool in_order() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(in_order() && kReasons.back().reason == quota_exceeded, "a reason has no text");

}  // namespace

std::span<const ReasonText> all_reasons() {
  return kReasons;
}

std::string_view text_of(Reason reason) {
  return kReasons[static_cast<std::size_t>(reason)].text;
}

std::string_view label_of(Reason reason) {
  return kReasons[static_cast<std::size_t>(reason)].label;
}

}  // namespace todoke::nostr
