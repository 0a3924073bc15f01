// The keys that the node signs with.
#include <fmt/format.h>

#include "app/bootstrap_parts.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "bootstrap/key_table.hpp"

namespace todoke::app {
namespace {

bootstrap::NodeKeys keys_in(const std::filesystem::path& file) {
  auto keys = bootstrap::read_keys(file);
  if (!keys) {
    throw UserError(fmt::format("{} is not there: a node with the role relay makes it at its first start",
                                file.string()));
  }
  return std::move(*keys);
}

void print_keys(const bootstrap::NodeKeys& keys) {
  for (const auto& named : keys.all())
    print(fmt::format("{:<24} {}\n", named.algorithm, named.key.pubkey().hex()));
}

void show_keys(const std::filesystem::path& file, bool as_json) {
  const auto keys = keys_in(file);
  if (as_json) {
    print(bootstrap::keys_json(keys) + "\n");
  } else {
    print_keys(keys);
  }
}

Task<void> rotate_node_keys(pg::Connection& connection, std::filesystem::path file, bool adopts) {
  const auto keys = adopts ? keys_in(file) : bootstrap::rotate_keys(file);
  co_await bootstrap::replace_keys(connection, keys, answer_deadline());
  print_keys(keys);
  note(adopts
           ? "the database knows the node by these keys now; what the others signed stays until it expires"
           : "a relay that runs signs anew with these keys and withdraws what the old ones signed, at once; "
             "otherwise it does so at its next start");
}

int run_key(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() != 1 || (words[0] != "show" && words[0] != "rotate"))
    throw UsageError("key: say show or rotate");
  const auto config = command_config(arguments);
  const auto file = node_key_file(config, data_folder(config));
  if (words[0] == "show") {
    show_keys(file, arguments.has("json"));
    return 0;
  }
  const bool adopts = arguments.has("adopt");
  with_running_database(
      config, [&](pg::Connection& connection) { return rotate_node_keys(connection, file, adopts); });
  return 0;
}

}  // namespace

Command key_command() {
  return {
      .name = "key",
      .summary = "the keys that the node signs with",
      .synopsis = "show [--json] | rotate [--adopt]",
      .details =
          "show prints the public keys: the node's own, and one for each algorithm whose results it "
          "signs.\n\n"
          "rotate makes a new secret. A running relay signs the node's descriptor and topic services with "
          "the "
          "new key and withdraws what the old keys had signed; the old secret is removed after that. Hosts "
          "that "
          "share the key file follow by themselves.",
      .options =
          {{"json", "", "as JSON, in hex, and nothing else", {"show"}},
           {"adopt",
            "",
            "no new secret: makes the database know the node by the keys of the file, where it knew it "
            "by others",
            {"rotate"}}},
      .words_max = 1,
      .run = run_key,
  };
}

}  // namespace todoke::app
