// A node whose log can be followed from outside, and plain SQL on it as anybody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/certificate.hpp"
#include "harness/sql_session.hpp"
#include "harness/todoke_process.hpp"
#include "nostr/signature.hpp"

namespace todoke::test {

// A port below those that the system hands out by itself, so that nobody else takes it meanwhile.
std::uint16_t free_port();

// Why a connection is refused; empty when it is not.
std::string refusal(const std::string& url);

enum class Tcp { closed, plain, tls };

class LogNode {
 public:
  explicit LogNode(Tcp tcp);
  // Kills the node and waits for its database, so that the folder can be removed.
  ~LogNode();
  LogNode(const LogNode&) = delete;
  LogNode& operator=(const LogNode&) = delete;

  // `todoke ARGUMENTS` with this node's configuration.
  [[nodiscard]] Exit todoke(std::vector<std::string> arguments) const;
  // `todoke consumers add NAME …`; the connection string.
  [[nodiscard]] std::string add(const std::string& name, const std::vector<std::string>& more = {}) const;
  // stdout of `todoke psql -At`; throws when psql fails.
  std::string sql(const std::string& statement) { return node_->sql(statement); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }
  [[nodiscard]] const net::test::TestCertificate& certificate() const { return *certificate_; }

  // Several clients at once publish notes through the relay; each deletes one of them and replaces one.
  void publish(std::size_t clients, std::size_t notes_each);
  // Rows by plain SQL, as the log's description has it.
  void append_by_sql(std::size_t rows);
  // Every row of the log in its order, as "seq op event_id topic_id".
  std::vector<std::string> log();

  void stop();
  // Again, with the same folder.
  void start(Tcp tcp);
  // With these roles only, without TCP.
  void start_roles(const std::string& roles);
  [[nodiscard]] ChildProcess& process() { return node_->process(); }

 private:
  TempFolder folder_;
  std::uint16_t port_ = 0;
  std::unique_ptr<net::test::TestCertificate> certificate_;
  std::vector<std::string> settings_;
  std::unique_ptr<NodeProcess> node_;
};

std::vector<std::string> lines_of(const std::string& text);
std::string with_user(const std::string& url, const std::string& user, const std::string& password);

}  // namespace todoke::test
