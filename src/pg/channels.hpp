// The channels of NOTIFY that the program listens to. migrations/0001_admin.sql has the same names for those
// who notify (cn_names.channel_…), and says what each is for; a test compares the two.
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

inline constexpr std::array kAll{kConfig, kLog,    kTopics,        kPurged,        kEphemeral,
                                 kGossip, kBlocks, kOrdersPending, kOrdersSettled, kOrdersHalts};

}  // namespace todoke::pg::channels
