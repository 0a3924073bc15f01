// The User API in one run: requests a second with an access token, for a list of subscriptions and for a
// search, and what of the processor the node itself uses for one; the statements of the list by pgbench, on
// the same Postgres, beside it. Started by bench/api, which names pgbench.
//
//   api_bench [PGBENCH]   without it the comparison is left out
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "embedded/folder.hpp"
#include "embedded_bench.hpp"
#include "nostr/signature.hpp"
#include "orders_load/http_load.hpp"
#include "own_node.hpp"
#include "users/accounts_sql.hpp"
#include "users/topics_sql.hpp"

namespace todoke::bench {
namespace {

constexpr std::size_t kRequests = 20'000;
constexpr std::size_t kSearches = 4'000;
constexpr std::size_t kConnections = 16;
constexpr const char* kPgbenchSeconds = "5";
constexpr const char* kTopic = "kukuri:0000000000000000000000000000000000000000000000000000000000000001";

// Twenty subscriptions of a key, one of them to a topic with ten thousand posts.
std::string fill(const std::string& pubkey) {
  return fmt::format(
      "DELETE FROM cn_user.plan_limits; "
      "INSERT INTO cn_user.topic_subscriptions (topic_id, subscriber_pubkey, services) "
      "SELECT 'kukuri:' || lpad(n::text, 64, '0'), '{0}', '{{index}}' FROM generate_series(1, 20) n; "
      "INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_seq, "
      "source, topics) "
      "SELECT encode(sha256(n::text::bytea), 'hex'), '{0}', 1, 1700000000 + n, '[[\"t\",\"{1}\"]]', 'a fox ' "
      "|| n, "
      "repeat('0', 128), n, 'ws', ARRAY['{1}'] FROM generate_series(1, 10000) n; "
      "INSERT INTO cn_search.post_search_documents (event_id, pubkey, kind, created_at, ingested_at, topics, "
      "tokens) "
      "SELECT e.event_id, e.pubkey, 1, e.created_at, e.ingested_at, e.topics, "
      "CASE WHEN e.created_at % 20 = 0 THEN '''fox'':1'::tsvector ELSE '''dog'':1'::tsvector END "
      "FROM cn_relay.events e; ANALYZE",
      pubkey, kTopic);
}

std::string request(std::string_view method, const std::string& path, const std::string& more,
                    const std::string& body = "") {
  return fmt::format(
      "{} /api/v1{} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      method, path, more, body.size(), body);
}

// A member of the JSON object that an answer is.
std::string member_of(HttpConnection& connection, const std::string& text, std::string_view name) {
  if (connection.ask(text) != 200) throw std::runtime_error(connection.answer());
  const auto body = read_json(connection.answer().substr(connection.answer().find("\r\n\r\n") + 4));
  return body.value().member(name)->text;
}

// The header line of an access token.
std::string log_in(const std::string& address, const nostr::SecretKey& key) {
  HttpConnection connection(address);
  const auto asked = fmt::format(R"({{"pubkey":"{}"}})", key.pubkey().hex());
  const auto challenge = member_of(connection, request("POST", "/auth/challenge", "", asked), "challenge");
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto event = nostr::sign_event(
      {now, nostr::kAuth, {{"relay", "http://localhost"}, {"challenge", challenge}}, ""}, key);
  const auto body = fmt::format(R"({{"auth_event_json":{}}})", event.json());
  const auto token = member_of(connection, request("POST", "/auth/verify", "", body), "access_token");
  return fmt::format("Authorization: Bearer {}\r\n", token);
}

// Of a process, since it began.
double cpu_seconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  constexpr int kBefore = 11;
  std::string skipped;
  for (int i = 0; i < kBefore; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double measure(const OwnNode& node, std::string_view what, const std::string& text, std::size_t count) {
  const auto before = cpu_seconds(node.pid());
  const auto result = post_all(node.address(), kConnections, count, [&](std::size_t) { return text; }, 200);
  const auto cpu = (cpu_seconds(node.pid()) - before) / static_cast<double>(count);
  const auto rate = static_cast<double>(count) / result.seconds;
  constexpr double kMillis = 1'000;
  print(
      fmt::format("  {:<22}{:>8.0f}/s   p50 {:.2f} ms   the node's own processor time {:.3f} ms a request\n",
                  what, rate, result.answer_ms[result.answer_ms.size() / 2], cpu * kMillis));
  return rate;
}

std::string with_values(std::string_view sql, const std::vector<std::string>& values) {
  std::string text(sql);
  for (std::size_t i = values.size(); i > 0; --i) {
    const auto place = fmt::format("${}", i);
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at))
      text.replace(at, place.size(), values[i - 1]);
  }
  return text;
}

// The statements of a list, prepared, by as many clients.
double pgbench_rate(const std::string& program, const OwnNode& node, const std::string& pubkey) {
  const auto script = node.data_dir().string() + "-pgbench.sql";
  const auto who = fmt::format("'{}'", pubkey);
  std::ofstream(script) << with_values(users::sql::kStandingOf.sql, {who}) << ";\n"
                        << with_values(users::sql::kListSubscriptions.sql, {who, "NULL::text", "''", "50"})
                        << ";\n";
  const auto sockets = embedded::layout_of(node.data_dir().string()).sockets;
  const auto command =
      fmt::format("{} -n -M prepared -c {} -j 1 -T {} -h {} -U todoke -f {} todoke 2>/dev/null", program,
                  kConnections, kPgbenchSeconds, sockets, script);
  auto* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("pgbench can't be started");
  std::string out;
  std::array<char, 4'096> piece;
  while (fgets(piece.data(), piece.size(), pipe) != nullptr) out += piece.data();
  pclose(pipe);
  const auto at = out.find("tps = ");
  if (at == std::string::npos) throw std::runtime_error("pgbench: " + out);
  return std::stod(out.substr(at + 6));
}

void measure_api(const std::string& pgbench) {
  OwnNode node;
  const auto key = nostr::SecretKey::generate();
  const auto token = log_in(node.address(), key);
  node.sql(fill(key.pubkey().hex()));
  print(fmt::format("requests with an access token, {} connections\n", kConnections));
  const auto list =
      measure(node, "topic-subscriptions", request("GET", "/topic-subscriptions", token), kRequests);
  const auto path = fmt::format("/search?topic={}&q=fox", kTopic);
  measure(node, "search", request("GET", path, token), kSearches);
  if (pgbench.empty()) return;
  const auto bare = pgbench_rate(pgbench, node, key.pubkey().hex());
  print(fmt::format("  {:<22}{:>8.0f}/s\n", "its SQL by pgbench", bare));
  print(fmt::format("ratio topic-subscriptions to its SQL by pgbench: {:.2f}\n", list / bare));
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  try {
    todoke::bench::measure_api(argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    std::fputs(fmt::format("api_bench: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
