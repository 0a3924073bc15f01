// What the kinds of this network must carry: node descriptors, topic services, reports, labels, and NIP-85
// assertions with the list of their providers. Other kinds pass.
#pragma once

#include <optional>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

inline constexpr std::string_view kNodeDescriptorSchema = "kukuri-node-desc-v1";
inline constexpr std::string_view kTopicServiceSchema = "kukuri-topic-service-v1";

std::optional<Reason> broken_kind_rule(const Event& event);

// spam, illegal, harassment, impersonation, nsfw.
bool is_report_reason(std::string_view text);
// A report's reason, or safe.
bool is_label(std::string_view text);

}  // namespace todoke::nostr
