// The gossip network: what other nodes need to dial this one, and whom this one dials.
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "app/instance_file.hpp"
#include "app/p2p_sql.hpp"
#include "base/json_value.hpp"
#include "gossip/config.hpp"
#include "gossip/endpoint.hpp"
#include "gossip/peer_book.hpp"
#include "net/client.hpp"
#include "net/url.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kP2pAskMax(5);
constexpr int kP2pOk = 200;

Task<void> ask_gossip(net::HttpClient& client, std::string address, std::string& json) {
  net::ClientRequest request;
  request.url = net::parse_url(fmt::format("http://{}/gossip", address)).value();
  const auto response = co_await client.send(std::move(request), Deadline::after(kP2pAskMax));
  if (response.status == kP2pOk) json = response.body;
}

// What the first node of the data folder says that has gossip.
std::string gossip_of_running(const Config& config) {
  if (!gossip::left_out().empty())
    throw UserError(fmt::format("this build has no gossip: {}", gossip::left_out()));
  const auto folder = data_folder(config);
  const auto instances = running_instances(folder);
  if (instances.empty())
    throw UserError(fmt::format("no node runs on {}; `todoke up` starts one", folder.string()));
  for (const auto& instance : instances) {
    const auto address = instance.notes.find("internal");
    if (address == instance.notes.end()) continue;
    std::string json;
    Runtime runtime;
    net::HttpClient client(runtime.main());
    runtime.run(ask_gossip(client, address->second, json));
    if (!json.empty()) return json;
  }
  throw UserError("the node that runs has no gossip: it needs the role relay, and gossip.enabled");
}

std::string text_in(const JsonValue& object, std::string_view name) {
  const auto* member = object.member(name);
  return member == nullptr ? std::string() : member->text;
}

JsonValue read_gossip(const std::string& json) {
  auto read = read_json(json);
  if (!read) throw UserError("the node gives an answer that can't be read");
  return std::move(*read);
}

void show_info(const Config& config, bool as_json) {
  const auto json = gossip_of_running(config);
  if (as_json) return print(json);
  const auto info = read_gossip(json);
  print(fmt::format("node id    {}\n", text_in(info, "node_id")));
  if (const auto* addresses = info.member("addresses")) {
    for (const auto& address : addresses->values) print(fmt::format("address    {}\n", address.text));
  }
  const auto peer = text_in(info, "peer");
  print(fmt::format("peer       {}\n\nOn the other node: todoke p2p add {}\n", peer, peer));
}

void show_peers(const Config& config, bool as_json) {
  const auto json = gossip_of_running(config);
  if (as_json) return print(json);
  const auto info = read_gossip(json);
  print(fmt::format("{:<7} {}\n", "topics", "dialled"));
  for (const auto& peer : info.member("peers")->values)
    print(fmt::format("{:<7} {}\n", text_in(peer, "topics"), text_in(peer, "peer")));
  print(fmt::format("\n{:<7} {}\n", "topics", "neighbour"));
  for (const auto& peer : info.member("neighbours")->values)
    print(fmt::format("{:<7} {}\n", text_in(peer, "topics"), text_in(peer, "node_id")));
}

Task<void> add_peer(pg::Connection& connection, gossip::Peer peer) {
  const auto others = co_await connection.query(sql::kCountPeers, {peer.id.hex()}, answer_deadline());
  if (others.one().get<std::int64_t>(0) >= gossip::PeerBook::kPeersMax) {
    throw UserError(fmt::format("{} peers are there already: remove one, or let others dial this node",
                                gossip::PeerBook::kPeersMax));
  }
  pg::Params params(peer.id.hex(), peer.address);
  co_await connection.query(sql::kAddPeer, std::move(params), answer_deadline());
  print(fmt::format("added {}\n", peer.text()));
}

Task<void> remove_peer(pg::Connection& connection, gossip::NodeId id) {
  const auto rows = co_await connection.query(sql::kRemovePeer, {id.hex()}, answer_deadline());
  if (rows.empty()) {
    throw UserError(
        fmt::format("{} is not in the list; the key gossip.peers is changed where it is set", id.hex()));
  }
  print(fmt::format("removed {}@{}\n", id.hex(), rows.one().get<std::string>(0)));
}

int run_p2p(const Arguments& arguments) {
  const auto& words = arguments.words;
  const auto wrong = "p2p: say info, peers, add PEER or remove PEER";
  if (words.empty()) throw UsageError(wrong);
  if (words[0] == "info" || words[0] == "peers") {
    if (words.size() > 1) throw UsageError(fmt::format("p2p {} takes no peer", words[0]));
    const auto config = load_config(arguments);
    (words[0] == "info" ? show_info : show_peers)(config, arguments.has("json"));
    return 0;
  }
  if (words.size() != 2 || (words[0] != "add" && words[0] != "remove")) throw UsageError(wrong);
  if (words[0] == "add") {
    const auto peer = gossip::parse_peer(words[1]);
    if (!peer) throw UsageError(peer.error().message);
    with_running_database(command_config(arguments),
                          [&](pg::Connection& connection) { return add_peer(connection, *peer); });
    return 0;
  }
  const auto id = gossip::NodeId::from_hex(words[1].substr(0, words[1].find('@')));
  if (!id) throw UsageError(fmt::format("'{}' names no node: a node id has 64 hex digits", words[1]));
  with_running_database(command_config(arguments),
                        [&](pg::Connection& connection) { return remove_peer(connection, *id); });
  return 0;
}

}  // namespace

Command p2p_command() {
  return {
      .name = "p2p",
      .summary = "the gossip network: what others need to dial this node, and whom it dials",
      .synopsis = "info [--json] | peers [--json] | add PEER | remove PEER",
      .details =
          "PEER is node_id@host:port, as `todoke p2p info` prints it on the other node; `remove` takes the "
          "node "
          "id alone, too. Running relays of the database see a change at once, and dial. A node that is "
          "removed "
          "may still dial this one: gossip.blocked keeps it out.",
      .options = {{"json", "", "as JSON", {"info", "peers"}}},
      .words_max = 2,
      .run = run_p2p,
  };
}

}  // namespace todoke::app
