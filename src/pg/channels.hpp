// The channels of NOTIFY that the program listens to. Statements that notify take the same names from
// cn_names.channel_… (migrations), where a comment says what each is for; a test compares the two.
#pragma once

#include <array>
#include <string_view>

namespace todoke::pg::channels {

inline constexpr std::string_view kConfig = "cn_admin_config";
inline constexpr std::string_view kLog = "cn_relay_outbox";
inline constexpr std::string_view kTopics = "cn_relay_topics";
inline constexpr std::string_view kPurged = "cn_relay_purged";
inline constexpr std::string_view kEphemeral = "cn_relay_ephemeral";
inline constexpr std::string_view kGossip = "cn_relay_gossip";
inline constexpr std::string_view kBlocks = "cn_relay_blocks";
inline constexpr std::string_view kOrdersPending = "orders_pending";
inline constexpr std::string_view kOrdersSettled = "orders_settled";
inline constexpr std::string_view kOrdersHalts = "orders_halts";
inline constexpr std::string_view kRights = "cn_user_rights";
inline constexpr std::string_view kRequests = "cn_user_requests";
inline constexpr std::string_view kKeys = "cn_bootstrap_keys";
inline constexpr std::string_view kJobs = "cn_admin_jobs";
inline constexpr std::string_view kAudit = "cn_admin_audit";

inline constexpr std::array kAll{kConfig, kLog,      kTopics,        kPurged,        kEphemeral,
                                 kGossip, kBlocks,   kOrdersPending, kOrdersSettled, kOrdersHalts,
                                 kRights, kRequests, kKeys,          kJobs,          kAudit};

}  // namespace todoke::pg::channels
