// A node with the User API (harness/node_rig.hpp), and people who call it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/http_rig.hpp"
#include "harness/json_answers.hpp"
#include "harness/node_rig.hpp"
#include "nostr/signature.hpp"

namespace todoke::test {

using net::test::RawResponse;
using nostr::SecretKey;

inline constexpr std::string_view kHost = "relay.example.org";
inline const std::string kTopicA = "kukuri:" + std::string(64, 'a');
inline const std::string kTopicB = "kukuri:" + std::string(64, 'b');

class UsersRig : public NodeRig {
 public:
  explicit UsersRig(const Flags& flags = {}, std::vector<std::string> roles = {"users"});

  // Each over a connection of its own; `path` is below /api/v1. `more`: header lines, each with its line
  // break.
  [[nodiscard]] RawResponse ask(std::string_view method, const std::string& path, const std::string& body,
                                const std::string& more) const;
  [[nodiscard]] RawResponse get(const std::string& path, const std::string& more = "") const;
  [[nodiscard]] RawResponse post(const std::string& path, const std::string& body,
                                 const std::string& more = "") const;

  // The header line of an access token that the key has logged in for.
  [[nodiscard]] std::string log_in(const SecretKey& key) const;
  // Makes terms and privacy current.
  void make_policies_current(const std::string& version) const;
  // Approves a request as an operator does; gives the problem.
  [[nodiscard]] std::string approve(const std::string& request_id) const;
  // Asks for a topic and approves it.
  void subscribe(const std::string& authorization, const std::string& topic,
                 const std::string& services = R"("index","moderation","trust")") const;
};

// What a key signs for a challenge.
std::string auth_event(const SecretKey& key, const std::string& challenge,
                       const std::string& relay = "https://relay.example.org",
                       std::optional<std::int64_t> created_at = {});
std::string verify_body(const std::string& event_json);
// The header line that signs a request for itself (NIP-98).
std::string http_auth(const SecretKey& key, std::string_view method, const std::string& target,
                      const std::string& body = "", std::optional<std::int64_t> created_at = {});
std::int64_t seconds_now();

}  // namespace todoke::test
