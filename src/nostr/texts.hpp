// Every reason for which the relay refuses something, with the text that goes over the wire. The texts are a
// contract with clients (docs/relay.md): this is the one place where they are written.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace todoke::nostr {

enum class Reason : std::uint8_t {
  // The answer of the store.
  already_stored,  // the only one that goes with OK true
  newer_version_stored,
  deleted_by_author,
  vanished,
  author_blocked,
  event_blocked,
  topic_blocked,
  address_blocked,
  policy_refused,
  policy_failed,
  topic_not_enabled,
  capacity,
  rate_limited,
  not_stored,
  storage_full,
  too_old_for_topic,
  no_backfill,

  // The form of an event: what it is made of.
  event_not_object,
  missing_member,
  duplicate_member,
  malformed_id,
  malformed_pubkey,
  malformed_created_at,
  malformed_kind,
  malformed_tags,
  malformed_content,
  malformed_sig,
  text_not_unicode,
  event_too_large,
  too_many_tags,
  tag_too_long,
  tags_too_large,
  bad_id,
  bad_signature,

  // The form of an event: what every kind must obey.
  auth_kind,
  p2p_only,
  vanish_elsewhere,
  created_at_out_of_range,
  bad_expiration,
  expired,
  missing_topic,
  missing_d,
  missing_scope,
  unknown_scope,
  several_scopes,
  missing_epoch,
  several_epochs,
  epoch_not_integer,
  epoch_not_positive,
  difficulty_too_low,
  protected_needs_auth,
  protected_other_author,
  scope_needs_auth,

  // The form of an event: what the kinds of this network must obey.
  k_not_kukuri,
  ver_not_1,
  d_not_descriptor,
  d_not_topic_service,
  missing_role,
  missing_exp,
  missing_expiration,
  missing_target,
  bad_target,
  missing_reason,
  unknown_reason,
  missing_label,
  unknown_label,
  missing_policy_url,
  missing_policy_ref,
  bad_confidence,
  missing_claim,
  missing_rank,
  bad_rank,
  missing_rank_provider,
  content_not_object,
  content_wrong_schema,
  content_missing_member,

  // Messages.
  message_too_long,
  message_not_json,
  message_binary,
  message_too_deep,
  message_not_array,
  unknown_verb,
  missing_element,
  extra_element,
  bad_subscription_id,

  // Filters and queries.
  no_filters,
  too_many_filters,
  filter_not_object,
  filter_duplicate_key,
  filter_unknown_key,
  filter_too_many_values,
  filter_too_many_tags,
  filter_bad_ids,
  filter_bad_authors,
  filter_bad_kinds,
  filter_bad_tag_values,
  filter_bad_event_tag,
  filter_bad_pubkey_tag,
  filter_bad_since,
  filter_bad_until,
  filter_bad_limit,
  filter_bad_seq_after,
  filter_bad_search,
  seq_after_differs,
  search_unsupported,
  search_not_here,
  search_refused,
  t_required,
  query_too_slow,
  query_failed,
  too_many_subscriptions,
  filters_too_large,

  // Reconciliation.
  neg_bad_message,
  neg_unsupported,
  neg_too_many_events,
  neg_too_many_open,
  neg_not_open,
  neg_too_slow,

  // Who is asking.
  not_auth_event,
  wrong_challenge,
  wrong_relay,
  too_many_keys,
  auth_required,
  consent_required,
  subscription_required,
  account_disabled,
  quota_exceeded,
};

struct ReasonText {
  Reason reason;
  std::string_view label;  // for metrics: a name of few letters and underscores
  std::string_view text;   // for the wire: NIP-01's prefix, a colon, words
};

// All of them, in the order of the enum.
std::span<const ReasonText> all_reasons();

std::string_view text_of(Reason reason);
std::string_view label_of(Reason reason);

}  // namespace todoke::nostr
